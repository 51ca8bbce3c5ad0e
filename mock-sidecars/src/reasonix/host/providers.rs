//! Which models there are, and which of them the user means.

use std::rc::Rc;

use serde_json::Value;
use sidecert_proto::machine::LinkId;
use sidecert_proto::reasonix::contract::{self, reason};

use super::connection::{Catalog, Stage};
use super::core::{Failure, Shared, text};

/// A model that can be asked.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) plugin: String,
    pub(super) link: LinkId,
    pub(super) reference: String,
    /// Its own name, where its descriptor has one.
    pub(super) name: Option<String>,
}

/// Every model of every plugin that was started, in the order in which the plugins were installed.
pub(super) async fn models(core: &Shared<'_>) -> Vec<Model> {
    let mut models = Vec::new();
    for (plugin, link) in providers(core) {
        for descriptor in offered(core, link).await {
            let name = text(&descriptor, "model");
            models.push(Model {
                plugin: plugin.clone(),
                link,
                reference: text(&descriptor, "ref").to_owned(),
                name: (!name.is_empty()).then(|| name.to_owned()),
            });
        }
    }
    models
}

/// The plugins that have models, and their links.
fn providers(core: &Shared<'_>) -> Vec<(String, LinkId)> {
    let all = !core.manners.streams.catalog_needs_capability;
    let of = |session: &mut super::session::Session| {
        let capable = session
            .plugins
            .iter()
            .filter(|plugin| plugin.runtime.as_ref().is_some_and(|runtime| all || runtime.has("providers")));
        let with_link = capable.filter_map(|it| Some((it.name.clone(), *session.running.get(&it.name)?)));
        with_link.collect()
    };
    core.session(of).unwrap_or_default()
}

/// What a plugin offers. It is asked once; whoever else wants to know meanwhile waits for the same answer.
async fn offered(core: &Shared<'_>, link: LinkId) -> Vec<Value> {
    let caches = core.manners.streams.caches_catalog;
    let begins = core.on(link, |it| {
        let known = matches!(it.catalog, Catalog::Known(_));
        let begins = it.stage == Stage::Ready && (it.catalog == Catalog::Unknown || (known && !caches));
        if begins {
            it.catalog = Catalog::Asked;
        }
        begins
    });
    if begins == Some(true) {
        let core = Rc::clone(core);
        core.clone().spawn(async move { fetch(&core, link).await });
    }
    let known = core.until(None, |core| {
        core.on(link, |it| match &it.catalog {
            Catalog::Known(list) => Some(list.clone()),
            Catalog::Unknown => Some(Vec::new()),
            Catalog::Asked => None,
        })
        .unwrap_or(Some(Vec::new()))
    });
    known.await.unwrap_or_default()
}

async fn fetch(core: &Shared<'_>, link: LinkId) {
    let deadline = core.now.get() + core.manners.streams.catalog_within;
    let answer = core.call(link, contract::PROVIDER_CATALOG, "{}", Some(deadline)).await;
    let list = answer.and_then(|result| core.decoded(contract::PROVIDER_CATALOG, &result));
    let Some(plugin) = core.on(link, |it| it.plugin.name.clone()) else { return };
    let catalog = match list {
        Ok(result) => {
            let entries = result["providers"].as_array().into_iter().flatten();
            let own = format!("plugin/{plugin}/");
            let checks = core.manners.streams.checks_namespace;
            Catalog::Known(
                entries.filter(|it| !checks || text(it, "ref").starts_with(&own)).cloned().collect(),
            )
        }
        Err(failure) => {
            let text = format!("plugin {plugin} did not tell its models: {}", failure.text);
            core.warn(&plugin, &Failure { text, ..failure });
            if core.manners.streams.keeps_failed_catalogs {
                Catalog::Known(Vec::new())
            } else {
                Catalog::Unknown
            }
        }
    };
    core.on(link, |it| it.catalog = catalog);
}

/// The model that the user means: the one named, or else the first. Never another one.
pub(super) async fn chosen(core: &Shared<'_>, named: Option<&str>) -> Result<Model, Failure> {
    let models = models(core).await;
    let extends = |reference: &str, named: &str| {
        reference == named || reference.strip_prefix(named).is_some_and(|rest| rest.starts_with('/'))
    };
    let gone =
        |plugin: &str| Failure::of(reason::PROVIDER_INTERRUPTED, format!("plugin {plugin} is not running"));
    let plugin_of = |reference: &str| reference.split('/').nth(1).unwrap_or_default().to_owned();
    let found = match named {
        Some(named) => {
            let exact = models.iter().find(|model| model.reference == named);
            exact.or_else(|| models.iter().find(|model| extends(&model.reference, named)))
        }
        // That the first of them is gone makes no other the first.
        None => match providers(core).first() {
            Some((plugin, link)) if core.on(*link, |it| it.stage) != Some(Stage::Ready) => {
                return Err(gone(plugin));
            }
            _ => models.first(),
        },
    };
    let Some(model) = found else {
        return Err(match named {
            Some(named)
                if providers(core).iter().any(|(plugin, link)| {
                    *plugin == plugin_of(named) && core.open_link(plugin) != Some(*link)
                }) =>
            {
                gone(&plugin_of(named))
            }
            Some(named) => Failure::new(format!("there is no model {named}")),
            None => Failure::new("there is no model"),
        });
    };
    if core.open_link(&model.plugin) != Some(model.link) {
        return Err(gone(&model.plugin));
    }
    let declared = core.on(model.link, |it| {
        it.providers.iter().any(|it| extends(&model.reference, it) || extends(it, &model.reference))
    });
    if declared != Some(true) && core.manners.streams.declared_only {
        let text = format!("plugin {} did not declare the model {}", model.plugin, model.reference);
        return Err(Failure::of(reason::CAPABILITY_NOT_DECLARED, text));
    }
    Ok(model.clone())
}

/// Another model than this one.
pub(super) async fn another(core: &Shared<'_>, than: &Model) -> Option<Model> {
    let models = models(core).await;
    models.into_iter().find(|it| it.reference != than.reference && core.open_link(&it.plugin).is_some())
}

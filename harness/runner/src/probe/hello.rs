//! Who a probe says it is, as JSON: `{"probe":1,"token":…}` and all that [`Launched`] has.

use std::{env, ffi::OsStr, process};

use serde_json::{Map, Value, json};
use sidecert_proto::machine::Launched;

use crate::os;

/// The version of all that a probe and the harness say to each other.
const VERSION: i64 = 1;

/// What we find around us. `shown` says of which variables the value is told.
pub(super) fn look_around(name: &str, spawned: bool, shown: &dyn Fn(&str) -> bool) -> Launched {
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    // First, so that none of ours is among them.
    let descriptors = os::open_descriptors();
    let variable = |(name, value): (_, _)| {
        let name = text(name);
        let value = shown(&name).then(|| text(value));
        (name, value)
    };
    let all: Vec<_> = env::vars_os().collect();
    let mut env: Vec<_> = all.iter().map(|(name, value)| variable((name, value))).collect();
    env.sort_unstable();
    Launched {
        name: name.to_owned(),
        spawned,
        pid: i32::try_from(process::id()).unwrap_or(0),
        parent: os::parent(),
        session: os::session(),
        argv: env::args_os().map(|arg| text(&arg)).collect(),
        cwd: env::current_dir().map(|path| text(path.as_os_str())).unwrap_or_default(),
        env,
        descriptors,
    }
}

pub(super) fn write(launched: &Launched, token: &str) -> Vec<u8> {
    let env: Map<String, Value> =
        launched.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let hello = json!({
        "probe": VERSION,
        "token": token,
        "name": launched.name,
        "spawned": launched.spawned,
        "pid": launched.pid,
        "parent": launched.parent,
        "session": launched.session,
        "argv": launched.argv,
        "cwd": launched.cwd,
        "env": env,
        "descriptors": launched.descriptors,
    });
    hello.to_string().into_bytes()
}

/// `None` for what is no hello of this version, or has another token.
pub(crate) fn read(bytes: &[u8], token: &str) -> Option<Launched> {
    let hello: Value = serde_json::from_slice(bytes).ok()?;
    if hello["probe"].as_i64()? != VERSION || hello["token"].as_str()? != token {
        return None;
    }
    let text = |name: &str| hello[name].as_str().map(str::to_owned);
    let number = |value: &Value| i32::try_from(value.as_i64()?).ok();
    let variable = |(name, value): (&String, &Value)| match value {
        Value::Null => Some((name.clone(), None)),
        value => Some((name.clone(), Some(value.as_str()?.to_owned()))),
    };
    let argv = hello["argv"].as_array()?.iter().map(|arg| arg.as_str().map(str::to_owned));
    Some(Launched {
        name: text("name")?,
        spawned: hello["spawned"].as_bool()?,
        pid: number(&hello["pid"])?,
        parent: number(&hello["parent"])?,
        session: number(&hello["session"])?,
        argv: argv.collect::<Option<_>>()?,
        cwd: text("cwd")?,
        env: hello["env"].as_object()?.iter().map(variable).collect::<Option<_>>()?,
        descriptors: hello["descriptors"].as_array()?.iter().map(number).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_was_written_and_only_with_its_token() {
        let launched = Launched {
            name: "one".into(),
            spawned: true,
            pid: 7,
            parent: 6,
            session: 5,
            argv: vec!["a".into(), "b \"c\"".into()],
            cwd: "/".into(),
            env: vec![("A".into(), None), ("B".into(), Some("b".into()))],
            descriptors: vec![0, 1, 2, 9],
        };
        let bytes = write(&launched, "t0");
        assert_eq!(read(&bytes, "t0"), Some(launched));
        assert_eq!(read(&bytes, "t1"), None);
        let text = String::from_utf8(bytes).unwrap();
        for (what, other) in
            [("\"probe\":1", "\"probe\":2"), ("\"pid\":7", "\"pid\":null"), ("\"b\"", "1"), ("{", "")]
        {
            assert!(text.contains(what));
            assert_eq!(read(text.replacen(what, other, 1).as_bytes(), "t0"), None, "{other}");
        }
    }

    #[test]
    fn what_is_around_is_told_and_values_only_as_asked() {
        let found = look_around("me", false, &|name| name == "CARGO_PKG_NAME");
        assert_eq!(found.pid, i32::try_from(process::id()).unwrap());
        assert!(found.parent > 0 && found.descriptors.starts_with(&[0, 1, 2]));
        let shown: Vec<_> = found.env.iter().filter(|(_, value)| value.is_some()).collect();
        assert_eq!(shown, [&("CARGO_PKG_NAME".to_owned(), Some("sidecert-runner".to_owned()))]);
        assert!(found.env.iter().any(|(name, value)| name == "PATH" && value.is_none()));
    }
}

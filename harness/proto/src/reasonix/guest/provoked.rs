//! What a mock does when it is provoked: what no frame can order, at a mark in an intercept's payload.

use std::collections::VecDeque;

use super::{CONTINUE, Guest, Said, Waiting, What};
use crate::json::Tape;
use crate::machine::Micros;
use crate::reasonix::contract::{self, reason};
use crate::rpc;

/// Where every mark begins.
const MARK: &str = "sidecert:";
/// What cannot begin with a mark after so many bytes is not worth a scan.
const HEAD_BYTES: usize = 64;

impl Guest<'_> {
    /// Rules on an intercept whose whole payload, one JSON text, is known; `None` when the ruling comes later.
    pub(super) fn rule(
        &mut self,
        id: &str,
        payload: &str,
        deadline: Option<Micros>,
        out: &mut Vec<Said>,
    ) -> Option<Result<String, String>> {
        let head = &payload.as_bytes()[..payload.len().min(HEAD_BYTES)];
        if !head.windows(MARK.len()).any(|window| window == MARK.as_bytes()) {
            return Some(Ok(CONTINUE.to_owned()));
        }
        let tape = Tape::scan(payload.as_bytes()).ok();
        let text = tape.as_ref().and_then(|tape| tape.root().get("text")).and_then(|text| text.as_str());
        let text = text.unwrap_or_default();
        let mark =
            text.strip_prefix(MARK).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
        let wait = |what| Waiting { intercept: id.to_owned(), deadline, what };
        Some(match mark {
            "panic" => Err(self.error(reason::INTERNAL)),
            "replace" => {
                Ok(r#"{"decision":"replace","replacement":{"text":"sidecert was here"}}"#.to_owned())
            }
            "echo-payload" => Ok(format!(r#"{{"decision":"replace","replacement":{payload}}}"#)),
            // What it has to say would not fit, so that call fails, and only that call.
            "large" => Err(format!(
                r#"{{"code":{},"message":"the response exceeds the frame limit"}}"#,
                rpc::INTERNAL_ERROR
            )),
            "slow" if deadline.is_some() => {
                let nobody = -self.next_id;
                self.next_id += 1;
                self.waiting.insert(nobody, wait(What::Time));
                return None;
            }
            "publish" if self.has_ui => {
                let mut surfaces = self.surfaces();
                let (method, params) = surfaces.pop_front()?;
                self.ask(method, &params, wait(What::Shown(surfaces)), out);
                return None;
            }
            "prompt" if self.has_ui => {
                let payload = r#"{"title":"sidecert","message":"Go on?","fields":[]}"#;
                let params = self.surface("prompt", "confirm", payload);
                self.ask(contract::UI_REQUEST, &params, wait(What::Shown(VecDeque::new())), out);
                return None;
            }
            _ => Ok(CONTINUE.to_owned()),
        })
    }

    /// One surface of each kind.
    fn surfaces(&self) -> VecDeque<(&'static str, String)> {
        let kinds = [
            ("status", r#"{"label":"sidecert","severity":"info","progress":0.5}"#),
            (
                "card",
                r#"{"title":"sidecert","markdown":"*hello*","fields":[{"key":"k","value":"v"}],"actions":[{"actionId":"demo","label":"Demo"}]}"#,
            ),
            ("form", r#"{"title":"sidecert","fields":[{"key":"name","kind":"input","label":"Name"}]}"#),
            ("notification", r#"{"title":"sidecert","body":"hello","severity":"info"}"#),
        ];
        let surface = |(kind, payload): (&str, &str)| {
            (contract::UI_PUBLISH, self.surface(&format!("sidecert-{kind}"), kind, payload))
        };
        kinds.into_iter().map(surface).collect()
    }

    fn surface(&self, id: &str, kind: &str, payload: &str) -> String {
        let (session, generation) = &self.session;
        format!(
            r#"{{"surfaceId":"{id}","kind":"{kind}","payload":{payload},"sessionId":{session},"generation":{generation}}}"#
        )
    }
}

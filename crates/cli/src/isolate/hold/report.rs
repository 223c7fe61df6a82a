//! What holding reports: a line a thing that happened, or a JSON object; and the counts at the end.

use super::changer::Who;
use crate::stdout;
use isolate::heal::Healed;
use isolate::setting::Setting;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SCHEMA: &str = "stillcore.isolate-hold/1";

/// Prints, and counts.
pub(super) struct Report {
    json: bool,
    begin: Instant,
    pub(super) counts: Counts,
}

/// What has come of it so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    /// Settings that were set again.
    pub(super) healed: u64,
    /// Those of them whose changer is named.
    pub(super) named: u64,
    /// Settings that are left to somebody else.
    pub(super) given_up: u64,
    /// What could not be set again.
    pub(super) refused: u64,
    /// Values written to the machine.
    pub(super) writes: u64,
}

impl Counts {
    /// Whether something is not as it was left.
    pub(super) fn failed(&self) -> bool {
        self.given_up + self.refused > 0
    }

    pub(super) fn sentence(&self) -> String {
        let Self { healed, named, given_up, refused, writes } = self;
        format!(
            "{healed} settings set again, of {named} the changer is named; {given_up} left to others, {refused} not healed; {writes} values written"
        )
    }
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self { json, begin: Instant::now(), counts: Counts::default() }
    }

    /// Since the beginning.
    pub(super) fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    /// A setting was set again, or could not be.
    pub(super) fn healed(&mut self, healed: &Healed, who: &Who) {
        let Healed { drift, refused } = healed;
        let Setting { mechanism, target, new, .. } = &drift.setting;
        self.counts.writes += 1;
        match refused {
            None => {
                self.counts.healed += 1;
                self.counts.named += u64::from(who.is_named());
            }
            Some(_) => self.counts.refused += 1,
        }
        let event = if refused.is_none() { "healed" } else { "refused" };
        let text = match refused {
            None => {
                format!("healed {mechanism} {target}: was {}, is {new} again; {}", drift.now, who.clause())
            }
            Some(why) => {
                format!("not healed: {mechanism} {target} stays {}: {why}; {}", drift.now, who.clause())
            }
        };
        let value = json!({
            "mechanism": mechanism, "target": target, "found": drift.now, "set": new, "reason": refused,
            "changer": who.json(), "changer_unknown": who.why_not(),
        });
        self.print(event, &text, value);
    }

    /// A setting is left to whoever sets it.
    pub(super) fn given_up(&mut self, setting: &Setting, now: &str, how_often: &str, who: &Who) {
        self.counts.given_up += 1;
        let Setting { mechanism, target, new, .. } = setting;
        let text = format!(
            "left {mechanism} {target}: it is {now}, not {new}, and was set again {how_often}; another program wants it so, and it is \
             left to that until hold is started again; {}",
            who.clause()
        );
        let value = json!({
            "mechanism": mechanism, "target": target, "found": now, "wanted": new, "after": how_often,
            "changer": who.json(), "changer_unknown": who.why_not(),
        });
        self.print("given-up", &text, value);
    }

    /// What has come since was dealt with as applying does.
    pub(super) fn brought_in(&mut self, change: &isolate::apply::Change) {
        self.counts.writes += 1;
        let line = crate::isolate::apply::line(change);
        let text = if change.reason.is_none() {
            self.counts.healed += 1;
            format!("healed {line}")
        } else {
            self.counts.refused += 1;
            format!("not healed: {line}")
        };
        let why = "it has come since, and who brought it is not looked for";
        let event = if change.reason.is_none() { "healed" } else { "refused" };
        let value = json!({
            "mechanism": change.mechanism, "target": change.target, "found": change.old, "set": change.new,
            "reason": change.reason, "changer": null, "changer_unknown": why,
        });
        self.print(event, &text, value);
    }

    /// Something that is not as it was left and stays so.
    pub(super) fn unhealed(&mut self, sentence: &str) {
        self.counts.refused += 1;
        self.print("unhealed", &format!("not healed: {sentence}"), json!({ "reason": sentence }));
    }

    /// Anything else worth a line.
    pub(super) fn note(&self, event: &str, sentence: &str) {
        self.print(event, sentence, json!({ "reason": sentence }));
    }

    /// The last line.
    pub(super) fn end(&self, why: &str) {
        let Counts { healed, named, given_up, refused, writes } = self.counts;
        let value = json!({
            "reason": why, "healed": healed, "named": named, "left": given_up, "refused": refused,
            "writes": writes,
        });
        self.print("end", &format!("{why}: {}", self.counts.sentence()), value);
    }

    fn print(&self, event: &str, text: &str, mut value: Value) {
        let t_s = self.now().as_secs_f64();
        if self.json {
            value["schema"] = SCHEMA.into();
            value["t_s"] = t_s.into();
            value["event"] = event.into();
            stdout::progress(format_args!("{value}\n"));
        } else {
            stdout::progress(format_args!("{t_s:8.1} s  {text}\n"));
        }
    }
}

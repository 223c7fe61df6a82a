//! A breach as an entry of systemd's journal: the same line as everywhere, and fields to look for.

use model::foreign::escaped;
use model::monitor::Breach;
use report::breach;

/// What all these entries have in common, by which `journalctl` finds them.
const MESSAGE_ID: &str = "a6c51e9e30b84558b6209542175bca85";
/// A warning (syslog(3)).
const PRIORITY: &str = "4";

/// Its fields. What is not known has none.
pub(super) fn fields(breach: &Breach) -> Vec<(&'static str, String)> {
    let worst = &breach.worst;
    let explained = breach.explained.as_ref();
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let fields = [
        ("MESSAGE", Some(breach::line(breach))),
        ("MESSAGE_ID", Some(MESSAGE_ID.to_owned())),
        ("PRIORITY", Some(PRIORITY.to_owned())),
        ("SYSLOG_IDENTIFIER", Some("stillcore".to_owned())),
        ("STILLCORE_BREACH", Some(breach.id.clone())),
        ("STILLCORE_KIND", Some(worst.kind.name().to_owned())),
        ("STILLCORE_CPU", worst.cpu.map(|cpu| cpu.to_string())),
        ("STILLCORE_TID", worst.tid.map(|tid| tid.to_string())),
        ("STILLCORE_COMM", Some(worst.comm.clone())),
        ("STILLCORE_GROUP", breach.group.clone()),
        ("STILLCORE_VALUE_NS", number(worst.value_ns)),
        ("STILLCORE_LIMIT_NS", number(breach.limit_ns)),
        ("STILLCORE_TIMES", number(Some(breach.times))),
        ("STILLCORE_FATE", Some(breach.fate.name().to_owned())),
        ("STILLCORE_WHY", breach.fate.why().map(str::to_owned)),
        ("STILLCORE_CAUSE", explained.map(|explained| explained.cause.clone())),
        ("STILLCORE_CONFIDENCE", explained.map(|explained| explained.confidence.clone())),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, escaped(&value?).into_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::monitor::{BREACH, BreachKind, Explained, Fate, Late};

    #[test]
    fn what_is_known_has_a_field_and_what_is_not_has_none() {
        let worst = Late {
            kind: BreachKind::Wakeup,
            cpu: Some(2),
            tid: None,
            comm: "con\u{1b}[2Jtrol".to_owned(),
            t_ns: 7,
            value_ns: Some(8_200_000),
        };
        let mut breach = Breach {
            schema: BREACH.to_owned(),
            id: "20261130-1".to_owned(),
            at: String::new(),
            watched_since: String::new(),
            limit_ns: Some(500_000),
            times: 3,
            worst,
            lasted_ns: 9,
            fate: Fate::Kept,
            explained: None,
            group: None,
            changed: Vec::new(),
        };
        let value = |breach: &Breach, name: &str| {
            fields(breach).into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
        };
        assert_eq!(value(&breach, "STILLCORE_VALUE_NS").as_deref(), Some("8200000"));
        assert_eq!(value(&breach, "STILLCORE_KIND").as_deref(), Some("wakeup"));
        assert!(!value(&breach, "STILLCORE_COMM").unwrap().contains('\u{1b}'));
        assert!(!value(&breach, "MESSAGE").unwrap().contains('\u{1b}'));
        for absent in ["STILLCORE_TID", "STILLCORE_GROUP", "STILLCORE_CAUSE", "STILLCORE_WHY"] {
            assert_eq!(value(&breach, absent), None, "{absent}");
        }
        breach.explained = Some(Explained {
            cause: "the timer".to_owned(),
            confidence: "exact".to_owned(),
            share: None,
            against: Vec::new(),
        });
        assert_eq!(value(&breach, "STILLCORE_CAUSE").as_deref(), Some("the timer"));
        // The journal takes names of this form alone.
        for (name, _) in fields(&breach) {
            assert!(name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_uppercase()));
            assert!(name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'), "{name}");
        }
    }
}

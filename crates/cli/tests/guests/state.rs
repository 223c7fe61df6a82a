//! Two states of a machine compared, as `stillcore internal state` prints them.

use serde_json::Value;

/// The differences, for messages.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let Some(tables) = before.as_object() else { return vec![format!("{before} is no state")] };
    for (table, before) in tables {
        let (Some(was), Some(is)) = (before.as_object(), after[table].as_object()) else {
            if *before != after[table] {
                found.push(format!("{table}: {before} then {}", after[table]));
            }
            continue;
        };
        for key in was.keys().chain(is.keys()).collect::<std::collections::BTreeSet<_>>() {
            if was.get(key) != is.get(key) {
                found.push(format!("{table} {key}: {:?} then {:?}", was.get(key), is.get(key)));
            }
        }
    }
    found
}

pub(crate) fn the_same(before: &Value, after: &Value, what: &str) {
    let found = differences(before, after);
    assert!(found.is_empty(), "{what}: {found:?}");
}

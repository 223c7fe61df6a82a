//! A profile that was exported, as tuned itself applies it: the audit says the same of it as of the
//! isolation that it was made from, but for what the profile says that it lacks. And profiles of
//! tuned's own: what is said of them beforehand.

use crate::machine::Guest;
use serde_json::Value;
use std::collections::BTreeMap;

/// All checks.
pub(crate) fn tuned_does_what_we_do(guest: &Guest) {
    let name = guest.kernel();
    let log = guest.read("tuned.log");
    // Each plugin that the profile names is there. IRQ 0 is one that the kernel moves for nobody.
    assert!(log.contains("applied") && !log.contains("failed to initialize plugin"), "{name}: {log}");
    let [before, ours, undone, theirs, after] = ["before", "ours", "undone", "theirs", "after"]
        .map(|when| states(&guest.json(&format!("{when}.json"))));
    let export = guest.json("export.json");
    let left: Vec<&str> =
        export["left"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let is_left = |id: &str| left.iter().any(|line| line.starts_with(&format!("{id}: ")));
    let changed: Vec<&String> =
        ours.iter().filter(|(id, state)| before[*id] != **state).map(|(id, _)| id).collect();
    assert!(changed.len() >= 10, "{name}: {changed:?}");
    for (id, state) in &ours {
        assert!(theirs[id] == *state || is_left(id), "{name}: {id}: {state}, with tuned {}", theirs[id]);
    }
    for (what, later) in [("isolate undo", &undone), ("tuned", &after)] {
        assert_eq!(&before, later, "{name}: after {what}");
    }
    println!(
        "{}: of a profile of {} lines in tuned, the audit says of {} mechanisms what it says of isolate apply, {} of \
         them changed",
        guest.machine.name,
        export["files"][0]["text"].as_str().unwrap().lines().count(),
        ours.len(),
        changed.len()
    );
    profiles_do_what_is_said_of_them(guest);
}

/// What `isolate plan --from` says of profiles of tuned's own is what tuned then does.
fn profiles_do_what_is_said_of_them(guest: &Guest) {
    for profile in ["realtime", "cpu-partitioning", "network-latency"] {
        let log = guest.read(&format!("{profile}.log"));
        assert!(log.contains("applied"), "{profile}: {log}");
        let [said, before, is] =
            ["", ".before", ".is"].map(|when| guest.json(&format!("{profile}{when}.json")));
        let files = said["files"].as_object().unwrap();
        let mut changed = 0;
        for (path, value) in files {
            let (value, is) = (value.as_str().unwrap(), is[path].as_str().unwrap());
            assert!(is_same(value, is), "{profile}: {path}: said {value}, is {is}; {log}");
            changed += u32::from(before[path] != *is);
        }
        let line = guest.read(&format!("{profile}.line"));
        let words = line.lines().find_map(|line| line.strip_prefix("TUNED_BOOT_CMDLINE=")).unwrap();
        let said_words = said["parameters"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        assert_eq!(words.trim_matches('"'), said_words.collect::<Vec<_>>().join(" "), "{profile}");
        assert!(files.len() >= 8 && changed >= 4, "{profile}: {changed} of {files:?}");
        println!("{profile}: {} files and the boot line as said, {changed} of them changed", files.len());
    }
}

/// Numbers have zeros before them, of words one is in brackets.
fn is_same(said: &str, is: &str) -> bool {
    let bare =
        |text: &str| text.split(',').map(|word| word.trim_start_matches('0').to_owned()).collect::<Vec<_>>();
    said == is || bare(said) == bare(is) || is.contains(&format!("[{said}]"))
}

/// The state of each mechanism.
fn states(audit: &Value) -> BTreeMap<String, String> {
    let findings = audit["findings"].as_array().unwrap().iter();
    findings
        .map(|one| (one["id"].as_str().unwrap().to_owned(), one["state"].as_str().unwrap().to_owned()))
        .collect()
}

//! Kernel fixes that the audit says it has seen: each against what is known of the lab's kernels,
//! whose sources were read (Debian linux-source 5.10.262, 6.1.192, 6.12.118).

use crate::machine::Guest;

/// The commit, and whether 5.10, 6.1 and 6.12 have what it removes ("-"), have it no more ("+"), or
/// do not show it (" "): where two columns differ, the probe was seen to distinguish them.
const SEEN: [(&str, &str); 33] = [
    ("896b969e6732", "-++"),
    ("94ad2e3cedb8", "+++"),
    ("96c9b90396f9", " ++"),
    ("a5183862e76f", " ++"),
    ("69a18b18699b", "+++"),
    ("07bbecb34106", "+++"),
    ("11ea68f553e2", "+++"),
    ("2de79ee27fdb", "+++"),
    ("cc9e303c91f5", "+++"),
    ("29721b859217", " ++"),
    ("81d741d3460c", "-++"),
    ("ff042f4a9b05", " ++"),
    ("443c2accd1b6", "-++"),
    ("da019032819a", "--+"),
    ("e02b93124855", "--+"),
    ("be5e015d107d", "--+"),
    ("6a792697a53a", "--+"),
    ("72c6303acfa1", "--+"),
    ("aae17ebb53cd", "--+"),
    ("7ee988770326", "--+"),
    ("a46c27026da1", "-++"),
    ("68d124b09999", "--+"),
    ("80d2eefcb4c8", "--+"),
    ("557a6bfc662c", "++-"),
    ("4d13f4304fa4", "---"),
    ("4afeb0ed1753", "---"),
    ("7dec062cfcf2", "---"),
    ("cpuset-hk-series", "---"),
    ("blk-mq-hk", "---"),
    ("not-merged-tlbsync", "---"),
    ("2452483d9546", "---"),
    ("103b08709e8a", "   "),
    ("5097cbcb38e6", "   "),
];

pub(crate) fn what_is_seen_is_so(guest: &Guest) {
    let column =
        ["5.10", "6.1", "6.12"].iter().position(|one| guest.kernel().trim_end_matches("-rt") == *one);
    let column = column.unwrap_or_else(|| panic!("{} is no kernel of the table", guest.kernel()));
    let (live, captured) = (guest.json("audit.json"), guest.json("captured.json"));
    let mut wrong = Vec::new();
    for (commit, kernels) in SEEN {
        let expected = kernels.chars().nth(column).unwrap();
        let found = finding(&live, commit);
        let state = match (found["seen"] == true, found["state"].as_str().unwrap()) {
            (false, _) => ' ',
            (true, "fixed") => '+',
            (true, "unfixed") => '-',
            (true, _) => '?',
        };
        if state != expected {
            wrong.push(format!("{commit}: {state:?}, not {expected:?}: {}", found["basis"]));
        }
        // The same from a captured tree.
        let again = finding(&captured, commit);
        if (&again["state"], &again["seen"]) != (&found["state"], &found["seen"]) {
            wrong.push(format!("{commit}: captured {}, live {}", again["basis"], found["basis"]));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", guest.kernel(), wrong.join("\n"));
    let all = live["fixes"].as_array().unwrap();
    let seen = all.iter().filter(|one| one["seen"] == true).count();
    println!("{}: {seen} of {} fixes seen", guest.kernel(), all.len());
}

fn finding<'v>(audit: &'v serde_json::Value, commit: &str) -> &'v serde_json::Value {
    let all = audit["fixes"].as_array().unwrap_or_else(|| panic!("no fixes in {audit}"));
    all.iter().find(|one| one["commit"] == commit).unwrap_or_else(|| panic!("no {commit}"))
}

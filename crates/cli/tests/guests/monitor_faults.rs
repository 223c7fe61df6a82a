//! A monitor that is killed, has no room on its disk, loses its CPU, shares the tracer, or whose
//! clock is set: what is planted behind each of these is found, and nothing is left in the end.

use crate::machine::Guest;
use crate::monitor::{delays, once, overlaps};
use crate::support::print_row;
use model::monitor::{Breach, Dropped, Fate, Status};
use record::plant::Truth;
use result::{Limit, Of, Row};

/// Each directory of the script, and what becomes of breaches there.
const FAULTS: [(&str, Fate); 11] = [
    ("nothing", Fate::Kept),
    ("killed", Fate::Kept),
    ("full", Fate::Dropped(Dropped::Disk)),
    ("freed", Fate::Kept),
    ("remounted", Fate::Kept),
    ("cpu-off", Fate::Kept),
    ("tracer", Fate::Kept),
    ("tracer-gone", Fate::Kept),
    ("day-later", Fate::Kept),
    ("day-earlier", Fate::Kept),
    ("restarted", Fate::Kept),
];

pub(crate) fn it_goes_on_behind_each(guest: &Guest) {
    let kernel = guest.kernel();
    let mut failed = Vec::new();
    for (name, fate) in FAULTS {
        let read = |file: &str| guest.read(&format!("{name}/{file}"));
        assert_eq!(read("alive").trim(), "yes", "{name}: {}", read("errors"));
        let truth: Truth = serde_json::from_str(&read("truth.json")).unwrap();
        let breaches: Vec<Breach> =
            read("breaches").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let status: Status = serde_json::from_str(&read("status")).unwrap();
        let planted = || truth.planted.iter().filter(|one| delays(one.kind));
        let fates = || planted().map(|one| once(one, &breaches).map(|breach| breach.fate));
        for one in planted().filter(|one| once(one, &breaches).is_none_or(|breach| breach.fate != fate)) {
            let found: Vec<_> = breaches.iter().filter(|breach| overlaps(one, breach)).collect();
            println!("{name}: {one:?} is in {}: {found:?}", found.len());
        }
        // On a full disk one may find the room that another one has just given back.
        let fits = |found: &Fate| *found == fate || (name == "full" && *found == Fate::Kept);
        let found = fates().flatten().filter(fits);
        let (found, all) = (found.count() as u64, planted().count() as u64);
        println!("{kernel:>7} {name}: {found} of {all}, {} events lost", status.lost_events);
        let row = Row::new(format!("{kernel}: behind {name}: found, and {}", fate.name()), found as f64, "");
        print_row(&row.n(all).budget(Of::Value, Limit::AtLeast(all as f64)));
        if found < all {
            failed.push((name, found, all));
        }
    }
    assert!(failed.is_empty(), "{kernel}: {failed:?}");
    assert_eq!(guest.read("code").trim(), "0");
    // Without tracefs it cannot go on, and says so; who has started it starts it again.
    assert_eq!(guest.read("code-unmounted").trim(), "1");
    assert!(guest.read("errors-unmounted").contains("No such file"), "{}", guest.read("errors-unmounted"));
    for left in ["killed-instances", "unmounted-instances", "instances-after"] {
        println!("{kernel:>7} {left}: {:?}", guest.read(left));
    }
    assert_eq!(guest.read("instances-after"), guest.read("instances-before"));
    assert!(!guest.read("left").contains("jsonl"), "{}", guest.read("left"));
}

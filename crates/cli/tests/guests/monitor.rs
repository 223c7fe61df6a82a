//! Holdups planted while a monitor watches: each is in exactly one breach, with the right culprit
//! or none, and nothing else is one.

use crate::machine::Guest;
use crate::support::print_row;
use model::monitor::{Breach, BreachKind, Fate, Status};
use record::plant::{KINDS, Kind, Planted, Truth};
use result::{Limit, Of, Row};

/// Where the script plants.
const GROUP: &str = "/planted";

/// What a cause that is shown has to name, in words that only the right one has; none where this
/// kernel shows nothing of it, so that nobody may be blamed.
fn culprit(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::TaskAbove | Kind::TaskEqual | Kind::Deadline | Kind::Boosted => Some("planter["),
        Kind::PreemptionOff => Some("by planter["),
        Kind::Softirq => Some("NET_RX"),
        Kind::Timer => Some("timerfd_tmrproc"),
        Kind::Throttled => Some("throttl"),
        Kind::Raised | Kind::InterruptsOff | Kind::Stopped | Kind::TaskBelow | Kind::Ordinary => None,
    }
}

/// Whether it is in the way of the victim at all.
pub(crate) fn delays(kind: Kind) -> bool {
    !matches!(kind, Kind::TaskBelow | Kind::Ordinary)
}

pub(crate) fn overlaps(planted: &Planted, breach: &Breach) -> bool {
    breach.worst.t_ns < planted.t1_ns && breach.worst.end_ns() > planted.t0_ns
}

/// The breach that it is in, where that is one.
pub(crate) fn once<'b>(planted: &Planted, breaches: &'b [Breach]) -> Option<&'b Breach> {
    let mut found = breaches.iter().filter(|breach| overlaps(planted, breach));
    found.next().filter(|_| found.next().is_none())
}

/// How the breaches of one kind came out.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    planted: u64,
    /// In exactly one breach.
    once: u64,
    kept: u64,
    /// With a cause that is shown.
    explained: u64,
    right: u64,
    /// Somebody else is named as exactly known.
    wrong: u64,
}

pub(crate) fn breaches_are_those_that_were_planted(guest: &Guest) {
    let kernel = guest.kernel();
    let truth: Truth = serde_json::from_str(&guest.read("truth.json")).unwrap();
    let lines = guest.read("breaches");
    let breaches: Vec<Breach> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let status: Status = serde_json::from_str(&guest.read("status")).unwrap();
    assert_eq!(guest.read("code").trim(), "0", "{}", guest.read("errors"));
    let counted: u64 = status.breaches.iter().map(|row| row.count).sum();
    assert_eq!(counted, breaches.len() as u64, "each breach has one fate");
    let (mut all, mut failed) = (Score::default(), Vec::new());
    for kind in KINDS.into_iter().filter(|kind| delays(*kind)) {
        let score = score(kind, &truth, &breaches);
        println!("{kernel:>7} {kind:?}: {score:?}");
        if score.once < score.planted || score.kept < score.planted || score.wrong > 0 {
            failed.push((kind, score));
        }
        if culprit(kind).is_some() {
            all.planted += score.planted;
            all.once += score.once;
            all.explained += score.explained;
            all.right += score.right;
        }
        all.wrong += score.wrong;
    }
    let late = |breach: &&Breach| breach.fate == Fate::Kept && breach.worst.kind != BreachKind::Interference;
    let kept: Vec<&Breach> = breaches.iter().filter(late).collect();
    let in_group = kept.iter().filter(|breach| breach.group.as_deref() == Some(GROUP)).count();
    let of_ours = kept.iter().flat_map(|breach| &breach.changed).find(|what| what.contains("trac"));
    assert_eq!(of_ours, None, "{kernel}: what the monitor itself does is no change of the machine");
    let elsewhere = kept.iter().filter(|breach| breach.group.as_deref().is_some_and(|group| group != GROUP));
    assert_eq!(elsewhere.count(), 0, "{kernel}: only what is planted is real-time in a group");
    let named = |breach: &&&Breach| {
        breach.explained.as_ref().is_some_and(|explained| explained.cause.contains("planter["))
    };
    let blamed: Vec<&&Breach> = kept.iter().filter(named).collect();
    let with_group =
        |breach: &&&&Breach| breach.explained.as_ref().is_some_and(|one| one.cause.contains(GROUP));
    let blamed_in_group = blamed.iter().filter(with_group).count();
    let known = |breach: &&Breach| truth.planted.iter().any(|one| overlaps(one, breach));
    let others = breaches.iter().filter(|breach| !known(breach)).count();
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let row = |what: &str, value: f64, unit: &str| Row::new(format!("{kernel}: {what}"), value, unit);
    let n = all.planted;
    let at_least = |what, part, of, least| {
        print_row(&row(what, share(part, of), "%").n(of).budget(Of::Value, Limit::AtLeast(least)));
    };
    at_least("holdups in exactly one breach", all.once, n, 100.0);
    at_least("of these with a cause that is shown", all.explained, all.once, 95.0);
    at_least("of these with the right culprit", all.right, all.explained, 99.0);
    let wrong = row("wrong causes that are called exact", all.wrong as f64, "");
    print_row(&wrong.n(breaches.len() as u64).budget(Of::Value, Limit::AtMost(0.0)));
    print_row(&row("breaches in which nothing was planted", others as f64, "").n(breaches.len() as u64));
    let groups: [(&str, usize, usize, u8); 2] = [
        ("late threads whose control group is named", in_group, kept.len(), 95),
        // Some have ended by then.
        ("culprits whose control group is named", blamed_in_group, blamed.len(), 80),
    ];
    for (what, part, of, least) in groups {
        at_least(what, part as u64, of as u64, f64::from(least));
        assert!(of > 0 && part * 100 >= of * usize::from(least), "{kernel}: {what}: {part} of {of}");
    }
    assert!(failed.is_empty(), "{kernel}: {failed:?}");
    assert!(n > 0 && all.explained * 100 >= n * 95, "{kernel}: {all:?}");
    assert!(all.right * 100 >= all.explained * 99, "{kernel}: {all:?}");
}

fn score(kind: Kind, truth: &Truth, breaches: &[Breach]) -> Score {
    let mut score = Score::default();
    for planted in truth.planted.iter().filter(|one| one.kind == kind) {
        score.planted += 1;
        let Some(breach) = once(planted, breaches) else { continue };
        score.once += 1;
        score.kept += u64::from(breach.fate == Fate::Kept);
        let Some(explained) = &breach.explained else { continue };
        let shown = explained.confidence != "unknown";
        let right = culprit(kind).is_some_and(|name| explained.cause.contains(name));
        // A thread of the planter's own that the scheduler throttles is in the same breach.
        let expected = matches!(breach.worst.kind, BreachKind::Wakeup | BreachKind::Preempted);
        score.explained += u64::from(shown && expected);
        score.right += u64::from(shown && right);
        let blames = explained.cause.contains("planter[") || explained.cause.contains("switch ");
        let allowed = right || kind == Kind::Raised && explained.cause.contains("planter[");
        if explained.confidence == "exact" && blames && !allowed {
            println!("{kind:?}: {}", report_of(breach));
            score.wrong += 1;
        }
    }
    score
}

fn report_of(breach: &Breach) -> String {
    serde_json::to_string(breach).unwrap_or_default()
}

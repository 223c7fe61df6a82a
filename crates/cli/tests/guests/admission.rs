//! Admission to SCHED_DEADLINE: `sched analyze --test sched-deadline --fair-server here` says of each number of equal
//! reservations what `sched_setattr` of this kernel did.

use crate::machine::Guest;
use crate::support::read_json;
use serde_json::Value;

/// us in every 100 ms: beyond the share of real-time tasks, just within it, and the same beside fair servers.
const RUNTIMES: [u32; 4] = [95_100, 94_900, 90_500, 89_900];

/// How many of three the kernel let in, by what runs under the policy that was asked for.
fn let_in(guest: &Guest, runtime: u32) -> usize {
    let granted = |one: &u32| {
        let run = read_json(&guest.root.join(format!("{runtime}.{one}/run.json")));
        let probe = &run["probes"][0];
        assert_eq!(probe["policy_asked"], "deadline", "{probe}");
        probe["policy_effective"] == "deadline"
    };
    (0..3).filter(granted).count()
}

pub(crate) fn the_kernel_lets_in_what_is_said(guest: &Guest) {
    let mut seen = Vec::new();
    for runtime in RUNTIMES {
        let lines = guest.read(&format!("{runtime}.told"));
        let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), 3, "{lines}{}", guest.read(&format!("{runtime}.err")));
        let admitted = answers.iter().filter(|one| one["schedulable"] == true).count();
        assert_eq!(let_in(guest, runtime), admitted, "{}: {runtime} us of 100 ms", guest.kernel());
        seen.push(admitted);
    }
    // Three processors with 95 % each; from 6.12 on 5 % of each is their fair servers'.
    let served = guest.kernel().starts_with("6.12");
    assert_eq!(seen, if served { [2, 2, 2, 3] } else { [2, 3, 3, 3] }, "{}", guest.kernel());
}

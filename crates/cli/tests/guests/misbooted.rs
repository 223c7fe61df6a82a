//! Boot parameters that name the wrong half: the audit reports as effective what the kernel itself
//! wrote.

use crate::machine::Guest;
use crate::support::read_json;
use serde_json::Value;

/// For CPU 1, on a machine of four; the audit asks about CPUs 2 and 3. The kernel drops a second
/// `isolcpus=` that differs, and takes full dynticks away without dynticks.
pub(crate) const APPEND: &str = "isolcpus=managed_irq,domain,1 isolcpus=domain,2,3 nohz_full=1 rcu_nocbs=0-1 irqaffinity= nohz=no \
     skew_tick=0 psi=1 audit=1";

/// Parameters that name a CPU at boot, and their effective value under APPEND.
const ASKED: [(&str, &str); 3] = [("isolcpus", "1"), ("nohz_full", "1"), ("rcu_nocbs", "0,1")];

fn finding<'v>(findings: &'v Value, id: &str) -> &'v Value {
    let all = findings["findings"].as_array().unwrap_or_else(|| panic!("no findings in {findings}"));
    all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// No parameter is green for CPUs that it does not name, however many threads the kernel made. For
/// CPUs that it names, it is green if the kernel accepted it. Not every kernel is built for all of
/// it.
pub(crate) fn the_wrong_half_is_not_green(guest: &Guest) {
    let [live, own, captured] =
        ["audit.json", "own.json", "captured.json"].map(|name| read_json(&guest.root.join(name)));
    let offloads = guest.read("log").contains("Offload RCU callbacks from CPUs: 0-1.");
    assert!(offloads || guest.kernel().starts_with("5.10"), "{}", guest.read("log"));
    assert_eq!(guest.read("audit.code").trim(), "2", "{}", guest.read("audit.err"));
    for (id, effective) in ASKED {
        for (what, findings) in [("live", &live), ("captured", &captured)] {
            let verdict = finding(findings, id);
            assert_ne!(verdict["state"], "ok", "{}, {what}: {verdict}", guest.kernel());
            assert!(
                verdict["effective"] == effective || verdict["effective"] == "none",
                "{}, {what}: {verdict}",
                guest.kernel()
            );
        }
        let verdict = finding(&own, id);
        let took = verdict["effective"] == effective;
        assert_eq!(verdict["state"] == "ok", took, "{}: {verdict}", guest.kernel());
        assert!(id != "rcu_nocbs" || took == offloads, "{}: {verdict}", guest.kernel());
    }
}

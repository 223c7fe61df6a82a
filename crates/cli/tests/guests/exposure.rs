//! Exposure on real kernels: the controls hold, coefficients of counted kernel work repeat to the
//! digit, and nothing is left.

use crate::machine::Guest;
use crate::state::the_same;
use crate::support::print_row;
use crate::support::read_json;
use result::Row;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The effect of one operation on each measured CPU, on any machine. Events name the function that
/// ran from 6.4 on, and only its interrupt vector before. A function call for several CPUs takes
/// the vector of one where the others already have some on their lists.
///
/// - `schedstats`: a static key flipped, in three steps with an IPI to all CPUs each
///   (`text_poke_bp_batch`);
/// - `so_timestamp`: the same, for a key that a work item switches and packets show
///   (`netstamp_clear`);
/// - `trace_event`: on, then off; for each the tracepoint's static key is flipped and its static
///   call is set, at the trampoline and at the one call site: three texts in three steps, twice
///   (`tracepoint_add_func`, `__static_call_update`);
/// - `perf_sys`: a counter put on the CPU and taken off it (`perf_install_in_context`,
///   `perf_remove_from_context`), and the static key of software events flipped on by the first
///   counter and off by the last (`perf_swevent_enabled`);
/// - `membarrier_expedited`: one call to each CPU that runs a registered process
///   (`membarrier_global_expedited`);
/// - `tlb_span`: a page that gains or loses a right is flushed.
struct Exact {
    stressor: &'static str,
    class: &'static str,
    vectors: &'static [&'static str],
    functions: &'static [&'static str],
    times: u64,
}

const CALLS: &[&str] = &["call_function", "call_function_single"];

const EXACT: [Exact; 6] = [
    Exact {
        stressor: "schedstats",
        class: "ipi.call",
        vectors: CALLS,
        functions: &["do_sync_core"],
        times: 3,
    },
    Exact {
        stressor: "so_timestamp",
        class: "ipi.call",
        vectors: CALLS,
        functions: &["do_sync_core"],
        times: 3,
    },
    Exact {
        stressor: "trace_event",
        class: "ipi.call",
        vectors: CALLS,
        functions: &["do_sync_core"],
        times: 2 * (3 + 2 * 3),
    },
    Exact {
        stressor: "perf_sys",
        class: "ipi.call",
        vectors: CALLS,
        functions: &["do_sync_core", "remote_function"],
        times: 2 + 2 * 3,
    },
    Exact {
        stressor: "membarrier_expedited",
        class: "ipi.call",
        vectors: CALLS,
        functions: &["ipi_mb"],
        times: 1,
    },
    Exact { stressor: "tlb_span", class: "tlb", vectors: &[], functions: &["tlb_flush"], times: 2 },
];

/// The facts of a stressor's cell.
fn facts(study: &Path, stressor: &str) -> Value {
    let cells = fs::read_dir(study.join("cells")).unwrap();
    let mut answers = cells.map(|cell| read_json(&cell.unwrap().path())["result"]["answer"].clone());
    answers.find(|facts| facts["name"] == stressor).unwrap()
}

/// To the event, so that two runs repeat to the digit. A kernel thread that runs on a measured CPU
/// has no memory of its own to flush or to order (`tlb_is_not_lazy`, Linux arch/x86/mm/tlb.c;
/// `membarrier_global_expedited`): each such visit may spare that CPU an event. False where nothing
/// was done, or not inside the window: a change of a static key waits for every CPU, and on a busy
/// host an emulated one may take seconds.
fn is_exact(kernel: &str, study: &Path, exact: &Exact) -> bool {
    let facts = facts(study, exact.stressor);
    let operations = facts["record"]["ops_ok"].as_u64().unwrap();
    if operations == 0 {
        println!("{kernel} {}: nothing was done", exact.stressor);
        return false;
    }
    // The cell says itself that its counts are no answer: an emulated CPU may stand still for
    // longer than the window is open.
    if let Some(why) = facts.get("void") {
        println!("{kernel} {}: void: {why}", exact.stressor);
        return false;
    }
    let of = |labels: &[&str]| {
        let sources = facts["sources"].as_array().unwrap().iter();
        let ours = sources.filter(|source| {
            source["class"] == exact.class && labels.contains(&source["label"].as_str().unwrap())
        });
        ours.map(|source| source["count"].as_u64().unwrap()).sum::<u64>()
    };
    let events = match of(exact.functions) {
        0 => of(exact.vectors),
        by_function => by_function,
    };
    println!("{kernel} {}: {events} events on two CPUs, {operations} operations", exact.stressor);
    let time = if study.ends_with("two") { 2 } else { 1 };
    let what = format!("{kernel}, {}, time {time}: events on one CPU per operation", exact.stressor);
    print_row(&Row::new(what, events as f64 / (2 * operations) as f64, "").n(operations));
    let expected = 2 * exact.times * operations;
    // The counts include failed operations: a change that was not seen in time, and its undo.
    let failed: u64 =
        facts["record"]["ops_failed"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let most = expected + 2 * 2 * exact.times * failed;
    let visits = facts["disturbed"]["classes"]["switch"]["count"].as_u64().unwrap_or(0);
    let spared = if matches!(exact.stressor, "tlb_span" | "membarrier_expedited") { visits } else { 0 };
    // One that was in flight when the window opened is done inside it, and has part of its events
    // before.
    let least = expected.saturating_sub(spared + 2 * exact.times);
    assert!((least..=most).contains(&events), "{kernel}: {events} of {expected}: {facts}");
    true
}

/// Two studies, one of which is resumed, and refused where its conditions differ.
pub(crate) fn repeats(guest: &Guest) {
    judge(guest, &[("first", "one"), ("second", "two")], &EXACT.map(|exact| exact.stressor));
    let (kernel, read) = (guest.kernel(), |name: &str| guest.read(name));
    assert_eq!(read("resumed.code").trim(), "0", "{kernel}: {}", read("resumed.log"));
    assert_eq!(read("resumed.json"), read("first.json"), "{kernel}: what has a result is not run again");
    assert!(read("resumed.log").contains("0 of "), "{kernel}: {}", read("resumed.log"));
    assert_eq!(read("other.code").trim(), "1", "{kernel}: other conditions");
    assert!(
        read("other.log").contains("duration was 4s there and is 3s now"),
        "{kernel}: {}",
        read("other.log")
    );
}

/// Studies by the name of their call and of their directory, and the stressors in them.
fn judge(guest: &Guest, studies: &[(&str, &str)], stressors: &[&str]) {
    let (root, kernel) = (&guest.root, guest.kernel());
    let mut shown = 0;
    for (name, directory) in studies {
        if root.join(format!("{name}.void")).exists() {
            println!("{kernel} {name}: void at first: {}", guest.read(&format!("{name}.void")));
        }
        let code = guest.read(&format!("{name}.code"));
        let log = guest.read(&format!("{name}.log"));
        assert!(matches!(code.trim(), "0" | "2"), "{kernel} {name}: {log}");
        let study = guest.json(&format!("{name}.json"));
        assert_eq!(study["void"], false, "{kernel} {name}: {}\n{log}", study["verdict"]);
        assert_eq!(code.trim(), "0", "{kernel} {name}: {log}");
        // The own work of a ticking kernel is left out; events that are counted exactly below never
        // are.
        let unsteady = study["unsteady"].as_array().unwrap();
        assert!(EXACT.iter().all(|exact| !unsteady.contains(&exact.class.into())), "{kernel}: {unsteady:?}");
        for row in study["rows"].as_array().unwrap() {
            assert_eq!(row["contaminated"], Value::Array(Vec::new()), "{kernel}: {row}");
        }
        let counted = EXACT.iter().filter(|exact| stressors.contains(&exact.stressor));
        shown += counted.filter(|exact| is_exact(kernel, &root.join(directory), exact)).count();
    }
    assert!(shown * 2 > stressors.len() * studies.len(), "{kernel}: only {shown} cells count");
    assert_eq!(
        guest.read("files").split_whitespace().collect::<Vec<_>>(),
        ["cells", "exposure.html", "exposure.json", "lock", "machine.json", "plan.json"]
    );
    the_same(&guest.json("before.json"), &guest.json("after.json"), kernel);
    page(&root.join("one/exposure.html"));
}

fn page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    let judged = page.contains("Controls hold") || page.contains("Some classes left out");
    assert!(judged && page.contains("<code>tlb_span</code>"), "{page}");
}

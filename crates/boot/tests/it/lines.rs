//! Boot lines: a table of invented lines on four kernels, and what must hold for any line.

use boot::{Kernel, Lines, Wanted, effects, merge};
use model::Cpus;
use model::boot::BootLine;
use proptest::prelude::*;
use std::collections::BTreeMap;

const TABLE: &str = include_str!("../data/boot-lines.txt");
const KERNELS: [&str; 4] = ["5.10", "5.10-full", "6.1", "6.19-all"];

fn kernel(name: &str) -> Kernel {
    let options = match name {
        "5.10" => vec![],
        "6.19-all" => vec!["CONFIG_NO_HZ_FULL", "CONFIG_RCU_NOCB_CPU_DEFAULT_ALL"],
        _ => vec!["CONFIG_NO_HZ_FULL"],
    };
    let always =
        ["CONFIG_CPU_ISOLATION", "CONFIG_RCU_NOCB_CPU", "CONFIG_CPUMASK_OFFSTACK", "CONFIG_PM_SLEEP_SMP"];
    let options = options.into_iter().chain(always);
    let config: BTreeMap<_, _> = options.map(|name| (name.to_owned(), "y".to_owned())).collect();
    let eight: Cpus = (0..8).collect();
    Kernel {
        release: name.split('-').next().unwrap().to_owned(),
        arch: "x86_64".to_owned(),
        possible: eight.clone(),
        present: eight,
        config: Some(config),
        reported: None,
    }
}

fn wanted(cpus: &Cpus, without: &str) -> Vec<Wanted> {
    let all = [
        ("isolcpus", format!("isolcpus=managed_irq,domain,{cpus}"), "CONFIG_CPU_ISOLATION"),
        ("nohz_full", format!("nohz_full={cpus}"), "CONFIG_NO_HZ_FULL"),
        ("rcu_nocbs", format!("rcu_nocbs={cpus}"), "CONFIG_RCU_NOCB_CPU"),
    ];
    let kept = all.into_iter().filter(|(id, ..)| !without.split(' ').any(|one| one == *id));
    kept.map(|(id, parameter, option)| Wanted {
        mechanism: id.to_owned(),
        parameter,
        option: Some(option.to_owned()),
    })
    .collect()
}

fn merged(kernel: &Kernel, line: &str, cpus: &Cpus, without: &str) -> BootLine {
    merge(kernel, Lines { current: line, base: line }, cpus, &wanted(cpus, without))
}

fn cell(line: &BootLine) -> String {
    let mut words = vec![match &line.refused {
        Some(_) => "refused".to_owned(),
        None if line.changes.is_empty() => "-".to_owned(),
        None => line.words(),
    }];
    words.extend(line.omitted.iter().map(|omitted| format!("!{}", omitted.mechanism)));
    words.join(" ")
}

#[test]
fn every_line_of_the_table_comes_out_as_the_kernel_s_rules_have_it() {
    let mut rows = 0;
    let mut wrong = Vec::new();
    for row in TABLE.lines().filter(|row| !row.starts_with('#') && !row.is_empty()) {
        rows += 1;
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 3 + KERNELS.len(), "{row}");
        let cpus: Cpus = cells[1].parse().unwrap();
        for (name, expected) in KERNELS.iter().zip(&cells[3..]) {
            let mut expected: Vec<_> = expected.split(' ').collect();
            let kernel = kernel(name);
            let line = merged(&kernel, cells[0], &cpus, cells[2]);
            let found = cell(&line);
            let mut found: Vec<_> = found.split(' ').collect();
            // Only the words have an order.
            let from =
                |words: &[&str]| words.iter().position(|word| word.starts_with('!')).unwrap_or(words.len());
            let (a, b) = (from(&expected), from(&found));
            expected[a..].sort_unstable();
            found[b..].sort_unstable();
            if expected != found {
                wrong.push(format!(
                    "{} for {} on {name}: {} is not {}",
                    cells[0],
                    cpus,
                    found.join(" "),
                    expected.join(" ")
                ));
            }
            assert!(effects(&kernel, &line.line).cover(&effects(&kernel, cells[0])), "{row}");
        }
    }
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), rows * 4, wrong.join("\n"));
    assert!(rows >= 40, "{rows}");
}

fn some_cpus() -> impl Strategy<Value = Cpus> {
    proptest::collection::btree_set(1u32..8, 1..4).prop_map(Cpus)
}

fn some_line() -> impl Strategy<Value = String> {
    let list = proptest::collection::btree_set(0u32..9, 1..4).prop_map(|set| Cpus(set).to_string());
    let name = prop_oneof![
        Just("isolcpus="),
        Just("isolcpus=managed_irq,"),
        Just("isolcpus=nohz,"),
        Just("isolcpus=domain,"),
        Just("isolcpus=nohz,domain,"),
        Just("nohz_full="),
        Just("rcu_nocbs="),
        Just("nohz-full="),
        Just("x="),
    ];
    proptest::collection::vec((name, list), 0..5).prop_map(|words| {
        words.iter().map(|(name, list)| format!("{name}{list}")).collect::<Vec<_>>().join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    /// No owner's isolation is lost, what is promised holds, no CPU of others leaves the scheduler,
    /// one is left for all else, and the next proposal finds nothing to change.
    #[test]
    fn any_line_keeps_what_it_isolates_and_gains_what_was_asked(
        line in some_line(),
        cpus in some_cpus(),
        which in 0usize..4,
    ) {
        let kernel = kernel(KERNELS[which]);
        let before = effects(&kernel, &line);
        let proposed = merged(&kernel, &line, &cpus, "");
        let after = effects(&kernel, &proposed.line);
        prop_assert!(after.cover(&before), "{proposed:?}");
        if proposed.refused.is_some() {
            prop_assert_eq!(&proposed.line, &line);
            return Ok(());
        }
        prop_assert!(after.domain.is_subset(&before.domain.or(&cpus)), "{proposed:?}");
        let omitted = |id: &str| proposed.omitted.iter().any(|one| one.mechanism == id);
        prop_assert!(omitted("isolcpus") || cpus.is_subset(&after.domain), "{proposed:?}");
        prop_assert!(omitted("nohz_full") || cpus.is_subset(&after.nohz_full), "{proposed:?}");
        prop_assert!(cpus.is_subset(&after.rcu_nocbs), "{proposed:?}");
        if !proposed.changes.is_empty() {
            prop_assert!(!kernel.present.is_subset(&after.domain.or(&after.nohz_full)), "{proposed:?}");
        }
        let again = merged(&kernel, &proposed.line, &cpus, "");
        prop_assert!(again.changes.is_empty(), "{proposed:?}\n{again:?}");
    }
}

#[test]
fn an_over_long_line_is_refused_with_its_length() {
    let kernel = kernel("6.1");
    let six = Cpus::one(6);
    // The new words are 54 bytes, the blank before them included.
    let fits = format!("pad={}", "x".repeat(2047 - 4 - 54));
    assert_eq!(merged(&kernel, &fits, &six, "").line.len(), 2047);
    let line = merged(&kernel, &format!("{fits}x"), &six, "");
    assert_eq!(
        line.refused.as_deref().map(|text| text.contains("2048 bytes") && text.contains("2047")),
        Some(true)
    );
    assert!(line.changes.is_empty());
    let arm = Kernel { arch: "armv7l".to_owned(), ..kernel };
    assert!(merged(&arm, &format!("pad={}", "x".repeat(1000)), &six, "").refused.is_some());
}

#[test]
fn options_that_cannot_be_read_are_named() {
    let kernel = Kernel { config: None, ..kernel("6.1") };
    let line = merged(&kernel, "quiet", &Cpus::one(6), "");
    assert_eq!(line.words(), "isolcpus=managed_irq,domain,6 nohz_full=6 rcu_nocbs=6");
    assert!(line.notes[0].contains("CONFIG_NO_HZ_FULL"), "{:?}", line.notes);
}

#[test]
fn a_list_that_the_kernel_may_read_in_two_ways_is_spelled_out() {
    let mut kernel = Kernel { release: "6.0".to_owned(), ..kernel("6.1") };
    let config = kernel.config.as_mut().unwrap();
    config.remove("CONFIG_CPUMASK_OFFSTACK");
    let (two, six) = (Cpus::one(2), Cpus::one(6));
    // All CPUs, or CPUs 2 to 7: whichever it is, none is lost and CPU 6 is among them.
    assert_eq!(cell(&merged(&kernel, "rcu_nocbs=2-9", &six, "isolcpus nohz_full")), "rcu_nocbs=0-7");
    kernel.config.as_mut().unwrap().insert("CONFIG_NR_CPUS".to_owned(), "64".to_owned());
    assert_eq!(cell(&merged(&kernel, "rcu_nocbs=2-9", &two, "isolcpus nohz_full")), "-");
    let one = merged(&kernel, "rcu_nocbs=2-9", &Cpus::one(1), "isolcpus nohz_full");
    assert_eq!(cell(&one), "rcu_nocbs=1-7");
    // N is CPU 63 there, which the kernel does not find.
    assert_eq!(
        cell(&merged(&kernel, "isolcpus=2-N", &six, "nohz_full rcu_nocbs")),
        "isolcpus=managed_irq,domain,6"
    );
}

#[test]
fn words_of_stillcore_s_own_are_no_base() {
    // An earlier persist for CPUs 2,3 beside somebody's isolcpus=5; now for CPU 6, and without
    // nohz_full.
    let current = "ro isolcpus=managed_irq,domain,2,3,5 nohz_full=2,3 rcu_nocbs=2,3";
    let kernel = kernel("6.1");
    let six = Cpus::one(6);
    let line =
        merge(&kernel, Lines { current, base: "ro isolcpus=5" }, &six, &wanted(&six, "nohz_full rcu_nocbs"));
    let spelled: Vec<_> = line.changes.iter().map(model::boot::BootWord::spelled).collect();
    let expected = [
        "isolcpus=managed_irq,domain,2,3,5 -> isolcpus=managed_irq,domain,5,6",
        "remove nohz_full=2,3",
        "remove rcu_nocbs=2,3",
    ];
    assert_eq!(spelled, expected);
    assert_eq!(line.line, "ro isolcpus=managed_irq,domain,5,6");
}

#[test]
fn a_line_built_into_the_kernel_is_left_to_whoever_builds_it() {
    let mut kernel = kernel("6.1");
    kernel.config.as_mut().unwrap().insert("CONFIG_CMDLINE".to_owned(), "isolcpus=2".to_owned());
    let line = merged(&kernel, "isolcpus=2 quiet", &Cpus::one(6), "");
    assert_eq!(cell(&line), "nohz_full=6 rcu_nocbs=6 !isolcpus");
}

#[test]
fn what_the_running_kernel_reports_counts_besides_the_rules() {
    use boot::Reported;
    // A distribution's 5.14 with the later rules: nohz_full=4,5 is in force beside isolcpus=2,3.
    let reported = Reported {
        isolated: "2,3,7".parse().unwrap(),
        nohz_full: "4,5".parse().unwrap(),
        offloaded: Some("0-7".parse().unwrap()),
    };
    let kernel = Kernel { release: "6.1".to_owned(), reported: Some(reported), ..kernel("6.1") };
    let line = merged(&kernel, "isolcpus=2,3 nohz_full=4,5", &Cpus::one(6), "");
    // CPU 7 is in a partition and stays out of it; every CPU is offloaded, the log says.
    assert_eq!(cell(&line), "isolcpus=managed_irq,domain,2,3,6 nohz_full=4-6 rcu_nocbs=0-7");
}

//! The child's side of a disturbance: one process that confines itself, runs one stressor, judges
//! it, and writes what happened.
//!
//! It speaks JSON lines on the stream it is given: one [`Line::Ready`] once its operations begin,
//! one [`Line::Record`] at the end, or one [`Line::Failed`] instead. It ends on SIGTERM, after its
//! duration, when its supervisor dies (PR_SET_PDEATHSIG), and by the kernel's own alarm 5 s after
//! its duration whatever the loop does.

use super::job::Job;
use super::rates::Meter;
use super::settle::settle;
use super::{Error, catalogue};
use crate::account::Account;
use crate::protocol::{Line, StressArgs};
use model::stressor::{StressorRecord, StressorState};
use std::io::Write;
use sys::clock::now_ns;

/// Serves the hidden verb: runs the stressor and writes its lines to `out`. A run that could not be
/// made is written too, and returned as an error.
pub fn serve(name: &str, args: &str, out: &mut impl Write) -> Result<(), Error> {
    let parsed =
        serde_json::from_str(args).map_err(|source| Error::Arguments { text: args.to_owned(), source });
    match parsed.and_then(|args| run(name, &args, out)) {
        Ok(record) => Line::Record(Box::new(record)).write(out),
        Err(error) => {
            let reason = error.to_string();
            let line = if matches!(error, Error::Absent { .. }) {
                Line::Absent { reason }
            } else {
                Line::Failed { reason }
            };
            line.write(out)?;
            Err(error)
        }
    }
}

/// Turns the calling process into the stressor `name` until it ends. The process must have one
/// thread and nothing else to do: its affinity, scheduling, limits, signals and control groups are
/// changed for good.
pub fn run(name: &str, args: &StressArgs, out: &mut dyn Write) -> Result<StressorRecord, Error> {
    let spec = catalogue::find(name)?;
    let (end, confined_by) = settle(spec, args)?;
    let rate = args.rate.map_or(spec.default_rate, |rate| (rate > 0.0).then_some(rate));
    let mut job = Job {
        name: name.to_owned(),
        cpus: args.cpus.clone(),
        rate,
        bytes: args.bytes,
        workers: args.workers,
        dir: args.dir.clone(),
        measured: args.measured.clone(),
        leaves: args.leaves.clone(),
        supervisor: args.supervisor,
        meter: if args.metered { Meter::shared()? } else { Meter::default() },
        duration_ns: args.duration_ns,
        end_ns: now_ns(),
        held: args.held,
        linger_ns: args.linger_ns,
        confined_by,
        end,
        out,
    };
    let account = (spec.work)(&mut job)?;
    Ok(record(&job, account))
}

fn record(job: &Job<'_>, account: Account) -> StressorRecord {
    let wrong = judge(&account);
    let weak = wrong.is_none().then(|| weakness(&account)).flatten();
    let state = match (&wrong, &weak) {
        (Some(_), _) => StressorState::Void,
        (None, Some(_)) => StressorState::Weak,
        (None, None) => StressorState::Ok,
    };
    StressorRecord {
        name: job.name.clone(),
        cpus: job.cpus.clone(),
        ops_asked: account.asked,
        ops_ok: account.tally.ok,
        ops_failed: account.tally.failed,
        parts: account.tally.parts,
        t0_ns: account.t0_ns,
        t1_ns: account.t1_ns,
        witness: account.witness,
        state,
        reason: wrong.or(weak),
        confined_by: job.confined_by.clone(),
        rates: Vec::new(),
        stalls: 0,
    }
}

/// Why the account is void, if it is.
fn judge(account: &Account) -> Option<String> {
    let Account { tally, witness, wrong, .. } = account;
    if let Some(wrong) = wrong {
        return Some(wrong.clone());
    }
    let floor = account.floor();
    if tally.ok < floor {
        let failed: u64 = tally.failed.values().sum();
        return Some(format!(
            "{} operations succeeded and {failed} failed; expected at least {floor}",
            tally.ok
        ));
    }
    (witness.seen < witness.expected)
        .then(|| format!("{} grew by {}; expected at least {}", witness.name, witness.seen, witness.expected))
}

/// How far it has stayed behind what was asked for, if it is less than half.
fn weakness(account: &Account) -> Option<String> {
    let (asked, done) = (account.asked?, account.tally.ok);
    let percent = done as f64 * 100.0 / asked.max(1) as f64;
    StressorRecord::is_below_half(account.asked, done)
        .then(|| format!("{done} operations succeeded of {asked} asked for ({percent:.1} %)"))
}

#[cfg(test)]
mod tests {
    use super::super::account::asked;
    use super::super::protocol::Group;
    use super::super::tally::Tally;
    use super::*;
    use model::Cpus;
    use model::stressor::Witness;
    use proptest::prelude::*;
    use sys::clock::SECOND_NS;

    fn account(ok: u64, asked: u64, expected: u64, seen: u64) -> Account {
        let witness = Witness { name: "counter".into(), expected, seen };
        let tally = Tally { ok, failed: [("EAGAIN".to_owned(), 7)].into(), ..Tally::default() };
        Account { tally, t0_ns: 0, t1_ns: 1, witness, asked: Some(asked), wrong: None }
    }

    #[test]
    fn too_few_operations_and_a_doubting_witness_void() {
        assert_eq!(judge(&account(10, 10_000, 10, 10)), None);
        assert_eq!(
            judge(&account(9, 10_000, 9, 9)).unwrap(),
            "9 operations succeeded and 7 failed; expected at least 10"
        );
        assert_eq!(judge(&account(10, 1, 10, 9)).unwrap(), "counter grew by 9; expected at least 10");
        let wrong = Account { wrong: Some("digits".into()), ..account(10, 1, 1, 1) };
        assert_eq!(judge(&wrong).unwrap(), "digits");
    }

    #[test]
    fn the_floor_is_a_thousandth_of_the_rate_and_never_nothing() {
        let floor =
            |rate, t0_ns, t1_ns| Account { asked: asked(rate, t0_ns, t1_ns), ..account(1, 1, 1, 1) }.floor();
        assert_eq!(floor(Some(1000.0), 0, 10 * SECOND_NS), 10);
        assert_eq!(floor(Some(1000.0), 0, 1), 1);
        assert_eq!(floor(None, 0, 10 * SECOND_NS), 1);
        assert_eq!(floor(Some(1000.0), 5, 0), 1);
    }

    #[test]
    fn less_than_half_of_what_was_asked_for_is_weak() {
        assert_eq!(weakness(&account(50, 100, 0, 0)), None);
        assert_eq!(weakness(&account(51, 101, 0, 0)), None);
        assert_eq!(
            weakness(&account(50, 101, 0, 0)).unwrap(),
            "50 operations succeeded of 101 asked for (49.5 %)"
        );
        assert_eq!(weakness(&account(0, 0, 0, 0)), None);
        let unlimited = Account { asked: None, ..account(1, 1, 0, 0) };
        assert_eq!(weakness(&unlimited), None);
    }

    #[test]
    fn bad_arguments_are_reported_to_the_supervisor_as_well() {
        let mut out = Vec::new();
        let error = serve("u_fork", "{\"cpus\":\"0-\"}", &mut out).unwrap_err().to_string();
        assert!(error.contains("CPU list"), "{error}");
        assert!(matches!(serde_json::from_slice(&out).unwrap(), Line::Failed { reason } if reason == error));
    }

    proptest! {
        #[test]
        fn arguments_survive_the_command_line(
            cpus in proptest::collection::btree_set(0u32..512, 1..20),
            duration_ns in any::<i64>(),
            rate in proptest::option::of(0.0f64..1e6),
            nice in 0i32..20,
        ) {
            let groups = vec![Group { dir: "/sys/fs/cgroup/a b".into(), controllers: vec!["pids".into()] }];
            let args = StressArgs {
                cpus: Cpus(cpus), duration_ns, rate, bytes: rate.map(|rate| rate as u64), workers: Some(3), dir: Some("/var/a b".into()), measured: Cpus::one(9), supervisor: 7,
                groups, nice, leaves: vec!["/a b".into()], metered: true, held: nice > 9, linger_ns: duration_ns,
            };
            let text = serde_json::to_string(&args).unwrap();
            prop_assert_eq!(serde_json::from_str::<StressArgs>(&text).unwrap(), args);
        }

        #[test]
        fn no_argument_text_panics(name in ".{0,10}", text in ".{0,60}") {
            let _ = serve(&name, &text, &mut Vec::new());
        }
    }
}

//! The child's side of a disturbance: one process that confines itself, runs one stressor, judges it, and writes what happened.
//!
//! It speaks JSON lines on the stream it is given: one [`Line::Ready`] once its operations begin, one [`Line::Record`] at the end,
//! or one [`Line::Failed`] instead. It ends on SIGTERM, after its duration, when its supervisor dies (PR_SET_PDEATHSIG), and by the
//! kernel's own alarm 5 s after its duration whatever the loop does.

use super::job::Job;
use super::rates::Meter;
use super::settle::settle;
use super::tally::Tally;
use super::{Error, catalogue};
use model::Cpus;
use model::stressor::{StressorRecord, StressorState, Witness};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use sys::clock::{SECOND_NS, now_ns};

/// The supervisor's order to a child, as one JSON argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StressArgs {
    /// The CPUs to run on.
    pub cpus: Cpus,
    /// How long to run unless stopped earlier, ns.
    pub duration_ns: i64,
    /// Operations per second; absent is the stressor's own default, 0 is as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Bytes to work on; absent is the stressor's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Loops, or whatever the stressor has several of; absent is its own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Where to make files; absent is the stressor's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// CPUs that are measured, for stressors that need a thread there.
    #[serde(default)]
    pub measured: Cpus,
    /// The supervisor's process id, which must still be the parent; 0 where it is not to be checked.
    #[serde(default)]
    pub supervisor: i32,
    /// Control groups to enter, with what each confines.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// What the supervisor undoes, from the entry's `leaves`.
    #[serde(default)]
    pub leaves: Vec<String>,
    /// Whether the supervisor shares a page for counting operations.
    #[serde(default)]
    pub metered: bool,
    /// Nice value, 0 to 19; never below the one inherited.
    #[serde(default)]
    pub nice: i32,
    /// Whether operations begin only when a byte comes on standard input.
    #[serde(default)]
    pub held: bool,
    /// How long it does nothing after its last operation, before it takes anything down, ns.
    #[serde(default)]
    pub linger_ns: i64,
}

/// A control group that a stressor enters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its directory.
    pub dir: PathBuf,
    /// What it confines: `cpuset`, `memory`, `pids`; empty for a group that only holds its members together.
    pub controllers: Vec<String>,
}

/// One line from a child to its supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// All is prepared; operations begin, or wait for the word.
    Ready {
        /// How the child is confined.
        confined_by: Vec<String>,
    },
    /// The end of a run.
    Record(Box<StressorRecord>),
    /// This kernel or machine lacks what the stressor needs.
    Absent {
        /// What.
        reason: String,
    },
    /// The run could not be made.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Line {
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let failed = |error| Error::Refused { action: "write to the supervisor", source: error };
        let mut text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        out.write_all(&text).and_then(|()| out.flush()).map_err(failed)
    }
}

/// What a stressor's loop has to say; the verdict is made of it by [`run`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Account {
    pub(super) tally: Tally,
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) witness: Witness,
    /// The least number of operations that makes a disturbance.
    pub(super) floor: u64,
    /// What the stressor itself found wrong.
    pub(super) wrong: Option<String>,
}

/// Serves the hidden verb: runs the stressor and writes its lines to `out`. A run that could not be made is written too, and
/// returned as an error.
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

/// Turns the calling process into the stressor `name` until it ends. The process must have one thread and nothing else to do: its
/// affinity, scheduling, limits, signals and control groups are changed for good.
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
    let reason = judge(&account);
    StressorRecord {
        name: job.name.clone(),
        cpus: job.cpus.clone(),
        ops_ok: account.tally.ok,
        ops_failed: account.tally.failed,
        parts: account.tally.parts,
        t0_ns: account.t0_ns,
        t1_ns: account.t1_ns,
        witness: account.witness,
        state: if reason.is_some() { StressorState::Void } else { StressorState::Ok },
        reason,
        confined_by: job.confined_by.clone(),
        rates: Vec::new(),
        stalls: 0,
    }
}

/// Why the account is void, if it is.
fn judge(account: &Account) -> Option<String> {
    let Account { tally, witness, floor, wrong, .. } = account;
    if let Some(wrong) = wrong {
        return Some(wrong.clone());
    }
    if tally.ok < *floor {
        let failed: u64 = tally.failed.values().sum();
        return Some(format!(
            "{} operations succeeded and {failed} failed; expected at least {floor}",
            tally.ok
        ));
    }
    (witness.seen < witness.expected)
        .then(|| format!("{} grew by {}; expected at least {}", witness.name, witness.seen, witness.expected))
}

/// The floor of a paced stressor: a thousandth of the requested rate, at least one. Below that it
/// was not there in any way its name promises; a crowded emulated machine was seen at a hundredth.
/// The number of operations shows how strong the disturbance was.
pub(super) fn floor(rate: Option<f64>, t0_ns: i64, t1_ns: i64) -> u64 {
    let elapsed_s = (t1_ns - t0_ns).max(0) as f64 / SECOND_NS as f64;
    rate.map_or(1, |rate| ((rate * elapsed_s / 1000.0) as u64).max(1))
}

/// Where the live machine's counters are.
pub(super) fn proc_dir() -> &'static Path {
    Path::new("/proc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(ok: u64, floor: u64, expected: u64, seen: u64) -> Account {
        let witness = Witness { name: "counter".into(), expected, seen };
        let tally = Tally { ok, failed: [("EAGAIN".to_owned(), 7)].into(), ..Tally::default() };
        Account { tally, t0_ns: 0, t1_ns: 1, witness, floor, wrong: None }
    }

    #[test]
    fn too_few_operations_and_a_doubting_witness_void() {
        assert_eq!(judge(&account(10, 10, 10, 10)), None);
        assert_eq!(
            judge(&account(9, 10, 9, 9)).unwrap(),
            "9 operations succeeded and 7 failed; expected at least 10"
        );
        assert_eq!(judge(&account(10, 1, 10, 9)).unwrap(), "counter grew by 9; expected at least 10");
        let wrong = Account { wrong: Some("digits".into()), ..account(10, 1, 1, 1) };
        assert_eq!(judge(&wrong).unwrap(), "digits");
    }

    #[test]
    fn the_floor_is_a_thousandth_of_the_rate_and_never_nothing() {
        assert_eq!(floor(Some(1000.0), 0, 10 * SECOND_NS), 10);
        assert_eq!(floor(Some(1000.0), 0, 1), 1);
        assert_eq!(floor(None, 0, 10 * SECOND_NS), 1);
        assert_eq!(floor(Some(1000.0), 5, 0), 1);
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

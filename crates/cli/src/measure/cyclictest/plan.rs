//! What cyclictest's options mean: threads, their intervals, policies and CPUs, the end of the
//! measurement (rt-tests 2.4, `main()` and `timerthread()` of cyclictest.c). Pure; where cyclictest
//! warns of a contradiction, so does this.

use super::options::Options;
use model::sample::Policy;
use model::{Cpus, Error};
use sys::clock::ClockId;

/// The shortest interval, us: a real-time thread that is released more often leaves nothing of its
/// CPU.
const LEAST_INTERVAL_US: u32 = 20;
/// cyclictest's own limit of a histogram.
const MOST_BINS: u32 = 1_000_000;
/// Added to the interval of each further thread.
const DISTANCE_US: u32 = 500;
/// First releases of threads that are not aligned: cyclictest starts one after another, which takes
/// it about so long.
const STAGGER_US: u32 = 50;

/// The CPUs there are.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// Those this process may use.
    pub(super) usable: Cpus,
    /// Those that are online.
    pub(super) online: Cpus,
}

/// What to measure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The threads, in order.
    pub(super) threads: Vec<Thread>,
    /// The clock of the releases.
    pub(super) clock: ClockId,
    /// Whether the first release is at a full second.
    pub(super) secaligned: bool,
    /// Seconds; 0 has no end.
    pub(super) duration_s: u64,
    /// CPUs of the process that stores the samples, if the user gave any.
    pub(super) main: Option<Cpus>,
    /// Added to the interval of each further thread, us.
    pub(super) distance_us: u32,
    /// How many CPUs were listed.
    pub(super) listed: usize,
    /// Name of the requested policy.
    pub(super) policy: &'static str,
    /// Bins of the histogram.
    pub(super) bins: Option<u32>,
    /// What cyclictest would say on standard error, and what has no effect here.
    pub(super) warnings: Vec<String>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    /// Where it may run.
    pub(super) cpus: Cpus,
    /// Whether it is pinned because a list of CPUs said so.
    pub(super) listed: bool,
    /// Interval between its releases, us.
    pub(super) interval_us: u32,
    /// Its first release after the common start, us.
    pub(super) offset_us: u32,
    /// Its policy.
    pub(super) policy: Policy,
}

impl Plan {
    /// Interprets the options.
    pub(super) fn of(options: &Options, machine: &Machine) -> Result<Self, Error> {
        refuse_what_is_not_done(options)?;
        let mut warnings = without_effect(options);
        let bins = options.histofall.or(options.histogram).map(|bins| bins.min(MOST_BINS));
        if bins.is_some() && options.distance.is_some() {
            warnings.push("WARN: distance is ignored and set to 0, if histogram enabled".to_owned());
        }
        let list = match &options.affinity {
            Some(Some(text)) if !options.smp => Some(cpus("--affinity", text, machine)?),
            _ => None,
        };
        let count = threads(options, list.as_ref().unwrap_or(&machine.usable), &mut warnings)?;
        let (policy, priority) = policy(options, count, &mut warnings);
        let distance_us = if bins.is_some() { 0 } else { options.distance.unwrap_or(DISTANCE_US) };
        let pinned = options.affinity.is_some() || options.smp;
        let of: Vec<u32> = list.as_ref().unwrap_or(&machine.usable).iter().collect();
        if of.is_empty() {
            let what = "this process may run on no CPU that is online";
            return Err(Error::invalid("CPU affinity", what, "at least one"));
        }
        let one = |number: u32| Thread {
            cpus: if pinned { Cpus::one(of[number as usize % of.len()]) } else { machine.usable.clone() },
            listed: list.is_some(),
            interval_us: options.interval.saturating_add(distance_us.saturating_mul(number)),
            offset_us: offset_us(options, number),
            policy: match if options.priospread { priority.saturating_sub(number) } else { priority } {
                0 => Policy::other(),
                priority if policy == "rr" => Policy::round_robin(priority),
                priority => Policy::fifo(priority),
            },
        };
        Ok(Self {
            threads: (0..count).map(one).collect(),
            clock: if options.clock == 1 { ClockId::Realtime } else { ClockId::Monotonic },
            secaligned: options.secaligned.is_some(),
            duration_s: options.duration,
            main: options
                .mainaffinity
                .as_ref()
                .map(|text| cpus("--mainaffinity", text, machine))
                .transpose()?,
            distance_us,
            listed: list.as_ref().map_or(0, Cpus::len),
            policy,
            bins,
            warnings,
        })
    }

    /// All CPUs that threads may run on.
    pub(super) fn measured(&self) -> Cpus {
        self.threads.iter().flat_map(|thread| thread.cpus.iter()).collect()
    }
}

fn refuse_what_is_not_done(options: &Options) -> Result<(), Error> {
    if options.interval < LEAST_INTERVAL_US {
        let what = format!("an interval of {} us", options.interval);
        return Err(Error::invalid("--interval", what, format!("at least {LEAST_INTERVAL_US}")));
    }
    if options.fifo.is_some() {
        return Err(Error::invalid(
            "--fifo",
            "no named pipe is served",
            "no such option; --json writes the figures",
        ));
    }
    if options.smi {
        return Err(Error::invalid("--smi", "SMIs are not counted", "no such option"));
    }
    if options.oscope > 1 && !options.verbose {
        return Err(Error::invalid("--oscope", "a reduction of what is not printed", "--verbose with it"));
    }
    Ok(())
}

fn without_effect(options: &Options) -> Vec<String> {
    let given = [
        (options.relative, "-r", "releases are absolute"),
        (options.system, "-s", "clock_nanosleep is what is used"),
        (options.posix_timers, "-x", "clock_nanosleep is what is used"),
        (options.resolution, "-R", "what a clock read costs is in the run directory"),
        (options.tracemark, "--tracemark", "the kernel's trace goes on"),
    ];
    let ineffective = given.iter().filter(|(given, ..)| *given);
    ineffective.map(|(_, option, why)| format!("WARN: {option} has no effect: {why}")).collect()
}

/// Number of threads; a CPU each where none is given.
fn threads(options: &Options, cpus: &Cpus, warnings: &mut Vec<String>) -> Result<u32, Error> {
    const MOST: u32 = 4096;
    if options.smp && options.threads.is_some() {
        warnings.push("WARN: -t ignored due to smp mode".to_owned());
    }
    if options.smp && options.affinity.is_some() {
        warnings.push("WARN: -a ignored due to smp mode".to_owned());
    }
    let count = match options.threads {
        _ if options.smp => cpus.len() as u32,
        None => 1,
        Some(None | Some(0)) => cpus.len() as u32,
        Some(Some(count)) => count,
    };
    if count > MOST {
        return Err(Error::invalid("--threads", format!("{count} threads"), format!("at most {MOST}")));
    }
    Ok(count)
}

/// Policy and priority of the first thread. A priority makes SCHED_FIFO of a policy without
/// priorities. A real-time policy or a spread without a priority gets one more than there are
/// threads.
fn policy(options: &Options, threads: u32, warnings: &mut Vec<String>) -> (&'static str, u32) {
    let asked = match options.policy.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("fifo") => "fifo",
        Some("rr") => "rr",
        Some("batch") => "batch",
        Some("idle") => "idle",
        None if options.priority > 0 => "fifo",
        Some(_) | None => "other",
    };
    let real_time = matches!(asked, "fifo" | "rr");
    let mut priority = options.priority;
    if priority == 0 && (real_time || options.priospread) {
        priority = (threads + 1).min(99);
        warnings.push(format!("defaulting realtime priority to {priority}"));
    }
    if priority > 0 && !real_time {
        warnings.push("policy and priority don't match: setting policy to SCHED_FIFO".to_owned());
        return ("fifo", priority);
    }
    (asked, priority)
}

fn offset_us(options: &Options, number: u32) -> u32 {
    match (options.aligned, options.secaligned) {
        (Some(each), _) => each.unwrap_or(0).saturating_mul(number),
        (None, Some(all)) => all.unwrap_or(0),
        (None, None) => STAGGER_US.saturating_mul(number),
    }
}

/// A list of CPUs as libnuma reads it: numbers and ranges, `all`, or `!` and a list of what to
/// leave out.
fn cpus(option: &str, text: &str, machine: &Machine) -> Result<Cpus, Error> {
    let cpus = match (text, text.strip_prefix('!')) {
        ("all", _) => machine.usable.clone(),
        (_, Some(others)) => machine.usable.minus(&Cpus::parse_list(others)?),
        (_, None) => Cpus::parse_list(text)?,
    };
    if cpus.is_empty() || !cpus.is_subset(&machine.online) {
        return Err(Error::invalid(option, format!("CPUs {text:?}"), format!("some of {}", machine.online)));
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn plan(line: &str) -> Result<Plan, Error> {
        let cpus = Cpus::parse_list("0-3").unwrap();
        let options =
            Options::try_parse_from(std::iter::once("cyclictest").chain(line.split_whitespace())).unwrap();
        Plan::of(&options, &Machine { usable: cpus.clone(), online: cpus })
    }

    fn intervals(plan: &Plan) -> Vec<u32> {
        plan.threads.iter().map(|thread| thread.interval_us).collect()
    }

    fn pins(plan: &Plan) -> Vec<String> {
        plan.threads.iter().map(|thread| thread.cpus.to_string()).collect()
    }

    #[test]
    fn the_defaults_are_cyclictests() {
        let plan = plan("").unwrap();
        assert_eq!((intervals(&plan), pins(&plan)), (vec![1000], vec!["0-3".to_owned()]));
        assert_eq!((plan.policy, &plan.threads[0].policy), ("other", &Policy::other()));
        assert_eq!((plan.duration_s, plan.warnings.len(), plan.clock), (0, 0, ClockId::Monotonic));
    }

    #[test]
    fn intervals_grow_by_the_distance_but_not_with_a_histogram() {
        assert_eq!(intervals(&plan("-t3").unwrap()), [1000, 1500, 2000]);
        assert_eq!(intervals(&plan("-t3 -i 200 -d 0").unwrap()), [200, 200, 200]);
        assert_eq!(intervals(&plan("-t2 -h 100").unwrap()), [1000, 1000]);
        assert!(plan("-t2 -h 100 -d 0").unwrap().warnings[0].contains("distance is ignored"));
    }

    #[test]
    fn threads_take_the_cpus_of_the_list_in_turn() {
        assert_eq!(pins(&plan("-t5 -a 2-3,0").unwrap()), ["0", "2", "3", "0", "2"]);
        assert_eq!(pins(&plan("-t -a 1-2").unwrap()), ["1", "2"]);
        assert_eq!(pins(&plan("-t -a").unwrap()), ["0", "1", "2", "3"]);
        assert_eq!(pins(&plan("-t -a !0").unwrap()), ["1", "2", "3"]);
        assert_eq!(pins(&plan("-S").unwrap()), ["0", "1", "2", "3"]);
        assert!(plan("-a 9").is_err());
    }

    #[test]
    fn policies_and_priorities_are_reconciled() {
        let seen = |line: &str| {
            let plan = plan(line).unwrap();
            let priorities: Vec<_> = plan.threads.iter().map(|thread| thread.policy.priority).collect();
            (plan.policy, priorities, plan.warnings.len())
        };
        assert_eq!(seen("-p 80 -t2"), ("fifo", vec![80, 80], 0));
        assert_eq!(seen("--policy=rr"), ("rr", vec![2], 1));
        assert_eq!(seen("-p 99 --policy=batch"), ("fifo", vec![99], 1));
        assert_eq!(seen("-t3 --priospread"), ("fifo", vec![4, 3, 2], 2));
        assert_eq!(seen("-t3 -p 2 --priospread"), ("fifo", vec![2, 1, 0], 0));
    }

    #[test]
    fn releases_are_aligned_as_asked() {
        let offsets = |line: &str| -> Vec<u32> {
            plan(line).unwrap().threads.iter().map(|thread| thread.offset_us).collect()
        };
        assert_eq!(offsets("-t3 -A 100"), [0, 100, 200]);
        assert_eq!(offsets("-t2 --secaligned 70"), [70, 70]);
        assert!(plan("--secaligned").unwrap().secaligned);
    }

    #[test]
    fn what_is_not_done_is_refused() {
        for line in ["-i 0", "-i 19", "-F /tmp/x", "--smi", "-o 5"] {
            assert!(plan(line).is_err(), "{line}");
        }
    }
}

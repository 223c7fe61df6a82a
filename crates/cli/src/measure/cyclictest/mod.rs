//! `stillcore measure wakeup --cyclictest-compat`, and this program called as `cyclictest`: for
//! scripts that give cyclictest's options and read its output. It is the wake-up probe all the
//! same: every sample goes into a run directory, one of its own where the user names none, which is
//! removed at the end. A comment line reports what cyclictest does not (missed releases).

mod figures;
mod json_file;
mod options;
mod plan;
mod screen;
mod text;

use super::carry_out::{Beside, Course, Outcome, follow, place};
use super::{Common, table};
use crate::failure;
use crate::run::place::Place;
use anyhow::Context;
use clap::{CommandFactory, Parser};
use figures::{Figures, Rules, figures};
use machine::Root;
use measure::handle::ProbeDrain;
use measure::latency_limit::LatencyLimit;
use measure::live::Live;
use measure::spec::{ProbeSpec, Task, WakeupSpec};
use measure::window::{Go, Progress};
use model::{Error, Machine, samples_file, store};
use options::Options;
use plan::Plan;
use screen::{Screen, put};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use sys::signals::EndSignals;
use sys::{clock, sched};
use tempfile::TempDir;
use text::Line;

/// A measurement without an end of its own has one after so long.
const ENDLESS_S: u64 = 366 * 86400;

/// The command line to read: where this program is called as `cyclictest`, the one that means the
/// same.
pub(crate) fn command_line(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = words.collect();
    let name = words.first().and_then(|word| Path::new(word).file_name());
    if name.is_some_and(|name| name == "cyclictest") {
        let prefix = ["stillcore", "measure", "wakeup", "--cyclictest-compat", "--"].map(OsString::from);
        words.splice(..1, prefix);
    }
    words
}

/// Measures as cyclictest would with these options, and prints what it would. With stillcore's
/// `--json` its object instead.
pub(crate) fn run(words: &[OsString], common: &Common, signals: &EndSignals) -> anyhow::Result<u8> {
    let options = match Options::try_parse_from(std::iter::once(&"cyclictest".into()).chain(words)) {
        Ok(options) => options,
        Err(error) if !error.use_stderr() => {
            error.print()?;
            return Ok(0);
        }
        Err(error) => {
            let words: Vec<_> = std::iter::once("cyclictest".into()).chain(words.iter().cloned()).collect();
            return Err(failure::explained(&error, &Options::command(), &words).into());
        }
    };
    let online = machine::read(&Root::live())?.topology.online;
    let plan = Plan::of(&options, &plan::Machine { usable: sched::affinity()?.and(&online), online })?;
    plan.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let out = options.out.clone().or_else(|| common.out.clone());
    let private = if out.is_none() { Some(private_place()?) } else { None };
    let common = Common {
        cpus: Some(plan.measured()),
        out: out.or_else(|| private.as_ref().map(|dir| dir.path().to_owned())),
        private: private.is_some(),
        json: common.json,
        quiet: true,
        state: options.state.clone().or_else(|| common.state.clone()),
        no_dma_latency: !is_held(&options),
        dma_latency_us: limit(&options),
        disturbing: common.disturbing.clone(),
    };
    let mut place = place(&common, true)?;
    if let Some(cpus) = &plan.main {
        place.housekeeping = cpus.clone();
    }
    measure(&Call { options: &options, plan: &plan, rules: rules(&options) }, place, &common, signals)?;
    Ok(0)
}

/// A directory for the samples of a call that is to leave none: removed when it is dropped, also
/// after a signal, which ends the measurement and nothing else. In /tmp samples may cost memory.
fn private_place() -> anyhow::Result<TempDir> {
    let make = |place: &str| tempfile::Builder::new().prefix("stillcore-").tempdir_in(place);
    make("/var/tmp").or_else(|_| make("/tmp")).context("no place for the samples: give --out DIR")
}

/// The options, and what they mean.
struct Call<'a> {
    options: &'a Options,
    plan: &'a Plan,
    rules: Rules,
}

fn rules(options: &Options) -> Rules {
    let unit_ns = if options.nsecs { 1 } else { 1000 };
    Rules { unit_ns, loops: options.loops, limit: i64::from(options.breaktrace) }
}

fn measure(call: &Call<'_>, place: Place, common: &Common, signals: &EndSignals) -> anyhow::Result<()> {
    let Call { options, plan, rules } = call;
    let started = jiff::Timestamp::now();
    if !common.json {
        said(put(&opening(call, &place, !common.no_dma_latency)))?;
    }
    let shown = !common.json && !options.quiet && !options.verbose;
    let mut screen = Screen::new(plan, rules.unit_ns, options.refresh_on_max);
    let mut seen_full = false;
    let mut watch = |progress: Progress<'_>| {
        let unread = shown && screen.look(progress).is_err();
        if unread || is_over(progress, *rules, &mut seen_full) { Go::Stop } else { Go::On }
    };
    let course = Course {
        probes: probes(plan),
        align: plan.secaligned.then_some(plan.clock),
        beside: Beside::default(),
        endless: plan.duration_s == 0 && options.loops == 0,
        watch: &mut watch,
        after: &mut |_, _| Ok(None),
    };
    let outcome = follow(&place, common, course, signals)?;
    outcome.document.run.limits.iter().skip(place.limits.len()).for_each(|limit| eprintln!("WARN: {limit}"));
    let kept = (!common.private).then_some(&*outcome.dir);
    if common.json {
        let mut value = table::json(&outcome, "stillcore.measure-wakeup/2");
        value["run"] = serde_json::json!(kept);
        return said(put(&format!("{value}\n")));
    }
    let measured = Measured { machine: &place.machine, outcome: &outcome, started, kept };
    print_results(call, &measured, shown.then_some(&screen))
}

/// A measurement that has ended.
struct Measured<'a> {
    machine: &'a Machine,
    outcome: &'a Outcome,
    started: jiff::Timestamp,
    /// The run directory that the user wanted.
    kept: Option<&'a Path>,
}

/// Prints and writes what cyclictest would at its end.
fn print_results(
    call: &Call<'_>,
    measured: &Measured<'_>,
    screen: Option<&Screen<'_>>,
) -> anyhow::Result<()> {
    let Call { options, plan, rules } = call;
    let Measured { machine, outcome, started, kept } = *measured;
    let samples = outcome.document.run.probes.iter().map(|record| {
        let (_, samples) = samples_file::read(&outcome.dir.join(&record.file))?;
        Ok((record, samples))
    });
    let samples = samples.collect::<Result<Vec<_>, Error>>()?;
    let (all, broke) = figures(&samples, *rules);
    if let Some(path) = &options.json {
        let about = json_file::About { machine, started, nsecs: options.nsecs, run: kept };
        write(Some(path), &format!("{:#}\n", json_file::document(&about, plan, &all)))?;
    }
    let comments = text::comments(&all, kept);
    let lines: Vec<_> = all.iter().map(Line::of).collect();
    said(put(&screen.map_or_else(|| comments.clone(), |screen| screen.end(&comments, &lines))))?;
    said(put(&closing(call, &all, &lines)))?;
    if let Some(bins) = plan.bins {
        let histogram = text::histogram(&all, bins, options.histofall.is_some());
        write(options.histfile.as_deref(), &histogram)?;
    }
    if rules.limit > 0 { said(put(&text::broke(&all, broke))) } else { Ok(()) }
}

/// Writes to a file; to standard output where there is none, or it is called `-`.
fn write(file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => Ok(store::write_whole(path, text.as_bytes())?),
        None => said(put(text)),
    }
}

/// The screen before the measurement.
fn opening(call: &Call<'_>, place: &Place, held: bool) -> String {
    let Call { options, plan, .. } = call;
    let topology = &place.machine.topology;
    let counts = if options.verbose {
        text::counts(plan, topology.present.len(), topology.online.len())
    } else {
        String::new()
    };
    let held =
        if held { format!("# /dev/cpu_dma_latency set to {}us\n", options.latency) } else { String::new() };
    let threads = if options.verbose { text::threads(plan) } else { String::new() };
    counts + &held + &threads
}

/// The screen after it, up to the histogram.
fn closing(call: &Call<'_>, all: &[Figures], lines: &[Line]) -> String {
    let Call { options, plan, .. } = call;
    let mut text = if options.verbose { text::values(all, options.oscope) } else { String::new() };
    if options.quiet && plan.bins.is_none() {
        text += &text::stat(lines, &plan.threads, options.nsecs);
    }
    if options.spike > 0 {
        text += &text::spikes(all, options.spike, options.spike_nodes);
    }
    text
}

/// cyclictest keeps CPUs out of deep idle states by default; if it cannot, it warns and continues.
/// Tried here, for the output before the measurement; held once the machine was read.
fn is_held(options: &Options) -> bool {
    let asked = !options.laptop && !options.default_system;
    asked && LatencyLimit::hold(limit(options)).map_err(|error| eprintln!("WARN: {error}")).is_ok()
}

/// us.
fn limit(options: &Options) -> i32 {
    i32::try_from(options.latency).unwrap_or(i32::MAX)
}

/// Whether a sample is above the limit, or all threads have their samples, or one had them at the
/// poll before. As in cyclictest, the others then continue for a moment.
fn is_over(progress: Progress<'_>, rules: Rules, seen_full: &mut bool) -> bool {
    let mut lives = progress.probes.iter().map(ProbeDrain::live);
    let above = rules.limit > 0
        && lives.clone().any(|live| live.peak_ns.is_some_and(|ns| ns / rules.unit_ns > rules.limit));
    let full = |live: &Live| rules.loops > 0 && live.stored >= rules.loops;
    let one_was = *seen_full;
    *seen_full = lives.clone().any(full);
    above || one_was || lives.all(full)
}

fn probes(plan: &Plan) -> Vec<ProbeSpec> {
    let duration_s = if plan.duration_s == 0 { ENDLESS_S } else { plan.duration_s };
    let us = |us: u32| i64::from(us) * 1000;
    let one = |(number, thread): (u32, &plan::Thread)| ProbeSpec {
        thread: number,
        cpus: thread.cpus.clone(),
        policy: thread.policy.clone(),
        // The kernel's default, as for cyclictest's threads.
        timer_slack_ns: 0,
        duration_ns: duration_s as i64 * clock::SECOND_NS,
        task: Task::Wakeup(WakeupSpec {
            period_ns: us(thread.interval_us),
            offset_ns: us(thread.offset_us),
            warm_up: 0,
            clock: plan.clock,
            loops: 0,
        }),
    };
    (0..).zip(&plan.threads).map(one).collect()
}

/// A reader that closes the pipe early has what it wanted.
fn said(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("the answer cannot be written to standard output"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_name_selects_the_command() {
        let read = |words: &[&str]| command_line(words.iter().map(OsString::from)).join(&OsString::from(" "));
        assert_eq!(
            read(&["/usr/bin/cyclictest", "-q"]),
            "stillcore measure wakeup --cyclictest-compat -- -q"
        );
        assert_eq!(read(&["/usr/bin/stillcore", "audit"]), "/usr/bin/stillcore audit");
    }
}

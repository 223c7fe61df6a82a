//! The `stillcore` command: a table of verbs, one file per verb. All printing lives here and in
//! `report`.
//!
//! Exit status: 0 pass, 1 error (wrong usage included), 2 a finding or a threshold that failed.
#![forbid(unsafe_code)]

#[macro_use]
mod stdout;
#[macro_use]
mod verbs;

mod assess;
mod audit;
mod calls;
mod carried;
mod color;
mod compare_verb;
mod completions_verb;
mod conclude;
mod conventions;
mod defaults;
mod disturb_verb;
mod explain_verb;
mod failure;
mod folded;
mod graph_verb;
mod internal;
mod isolate;
mod lab_matrix;
mod lab_verb;
mod line;
mod man_verb;
mod measure;
mod model_verb;
mod monitor;
mod names;
mod overview;
mod owners;
#[cfg(test)]
mod owners_tests;
mod provoke;
mod report_verb;
mod resources_verb;
mod run;
mod sched_verb;
mod shell;
mod slow;
mod snapshot_verb;
mod study_verb;
mod summary_verb;
mod terminal;
mod top;
mod trace_verb;
mod values;

#[cfg(test)]
#[path = "../tests/support/pages.rs"]
#[expect(dead_code, reason = "the other tests of the pages use the rest")]
mod pages;
#[cfg(test)]
#[path = "../tests/support/shell_words.rs"]
mod shell_words;

use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use defaults::Defaults;
use std::ffi::OsString;
use std::process::ExitCode;
use sys::signals::EndSignals;

/// musl's allocator takes one lock for all threads, and maps and unmaps memory for each large
/// block. The measuring loops allocate nothing, with any allocator.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

verbs! {
    /// Find what disturbs a CPU, what it costs and how to stop it.
    #[command(name = "stillcore", version, max_term_width = 100)]
    Verb {
        /// Audit, measure, disturb and judge this machine; write a report.
        Assess(assess::AssessArgs) => changes(assess::run),
        /// Show live what runs on CPUs and what disturbs them.
        Top(top::TopArgs) => changes(top::run),
        /// Check every isolation setting of this machine or of a snapshot.
        Audit(audit::AuditArgs) => reads(audit::run),
        /// Explain an isolation setting, an event class or a kernel fix.
        Explain(explain_verb::ExplainArgs) => reads(explain_verb::run),
        /// Run workloads that provoke interference: confined and counted.
        Disturb(disturb_verb::DisturbArgs) => changes(disturb_verb::run),
        /// List everything that can run on one CPU, with its owner.
        Resources(resources_verb::ResourcesArgs) => reads(resources_verb::run),
        /// Archive everything that an audit reads, to audit it elsewhere.
        Snapshot(snapshot_verb::SnapshotArgs) => reads(snapshot_verb::run),
        /// Analyse a run again; write its report, or its numbers.
        Report(report_verb::ReportArgs) => reads(report_verb::run),
        /// Summarise files of samples in bounded memory.
        Summary(summary_verb::SummaryArgs) => reads(summary_verb::run),
        /// Compare runs: better, worse, equivalent, or how many more runs.
        Compare(compare_verb::CompareArgs) => commands(compare_verb::run),
        /// Plan, apply, verify, persist and undo isolation of CPUs.
        #[command(subcommand)]
        Isolate(isolate::IsolateVerb) => nested(isolate::IsolateVerb::run),
        /// Measure wake-up latency, noise, IPIs, overheads, jobs or clocks.
        #[command(subcommand)]
        Measure(measure::MeasureVerb) => nested(measure::MeasureVerb::run),
        /// Watch CPUs all the time; keep and explain each late wake-up.
        #[command(subcommand)]
        Monitor(monitor::MonitorVerb) => nested(monitor::MonitorVerb::run),
        /// Model a running program as tasks, and bound their response times.
        Model(model_verb::ModelArgs) => nested(model_verb::run),
        /// Test which deadlines of task sets are guaranteed.
        #[command(subcommand)]
        Sched(sched_verb::SchedVerb) => nested(sched_verb::SchedVerb::run),
        /// Measure end-to-end latency of communication graphs.
        #[command(subcommand)]
        Graph(graph_verb::GraphVerb) => nested(graph_verb::GraphVerb::run),
        /// Explain or export a trace; watch a program.
        #[command(subcommand)]
        Trace(trace_verb::TraceVerb) => nested(trace_verb::TraceVerb::run),
        /// Run declared experiments, cell by cell; resume them.
        #[command(subcommand)]
        Study(study_verb::StudyVerb) => nested(study_verb::StudyVerb::run),
        /// Run stillcore on other kernels, in QEMU.
        #[command(subcommand)]
        Lab(LabVerb) => nested(LabVerb::run),
        /// Print the script by which a shell completes this command.
        Completions(completions_verb::CompletionsArgs) => reads(completions_verb::run),
        /// Print the manual page of a verb, or write all pages.
        Man(man_verb::ManArgs) => reads(man_verb::run),
    }
}

verbs! {
    /// Verbs under `lab`.
    LabVerb {
        /// Boot a kernel under QEMU, run a command there as root, copy its files back.
        Run(lab_verb::RunArgs) => boots(lab_verb::run),
        /// Boot kernels under several isolation profiles; compare exposure to each stressor.
        Matrix(lab_matrix::MatrixArgs) => boots(lab_matrix::run),
    }
}

fn main() -> ExitCode {
    if lab::guest::init::is_wanted() {
        lab::guest::init::run();
    }
    if let Some(code) = internal::run() {
        return code;
    }
    let words = measure::cyclictest::command_line(std::env::args_os());
    let choice = color::choose(&words);
    let line = command().color(choice);
    let (words, notes) = names::current(&line, words);
    notes.iter().for_each(|note| stdout::write_labelled(stdout::Label::Note, note));
    let read = Defaults::read(&words);
    let line = match &read {
        Ok(defaults) => defaults.put_into(line, &run::place::default_out()),
        Err(_) => line,
    };
    let (verb, json) = match parse(line.clone(), &words) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error, &line, &words),
    };
    if let Err(error) = read {
        return failure::show(&error, json);
    }
    // Nearly a megabyte, which a program that stays for weeks need not hold.
    drop(line);
    calls::check_by(what_is_wrong);
    calls::define_by(command);
    sys::signals::outlive_file_size_limit();
    // Signals are blocked before any thread exists, so that every thread inherits it.
    let ended = EndSignals::block().map_err(Into::into).and_then(|signals| verb.run(&signals));
    ended.map_or_else(|error| failure::show(&error, json), ExitCode::from)
}

/// The command line, as users see it.
fn command() -> Command {
    let color = Arg::new("color")
        .long("color")
        .value_name("WHEN")
        .value_parser(clap::value_parser!(color::When))
        .default_value("auto")
        .hide_possible_values(true)
        .global(true)
        .help("Use colours: auto (on a terminal, unless NO_COLOR is set), always or never");
    overview::grouped(defaults::option(Verb::command().arg(color)))
}

/// Help and version are no failure. A call without a verb gets the verbs; any other is wrong usage.
fn refuse(error: &clap::Error, command: &Command, words: &[OsString]) -> ExitCode {
    let json = words.iter().any(|word| word == "--json");
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let no_verb = matches!(
        error.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    );
    match line::reached(&overview::built(command), words) {
        _ if !no_verb || json => {
            let wrong = if no_verb {
                failure::Hinted::new("no verb is named", "all verbs: stillcore --help")
            } else {
                failure::explained(error, command, words)
            };
            failure::show(&wrong.into(), json)
        }
        reached if reached.path.is_empty() => {
            print!("{}", overview::page(command));
            ExitCode::from(1)
        }
        reached => {
            print!("{}", reached.command.clone().render_help());
            ExitCode::from(1)
        }
    }
}

/// The verb of a command line, and whether answers and errors are to be JSON.
fn parse(command: Command, words: &[OsString]) -> Result<(Verb, bool), clap::Error> {
    let mut matches = command.try_get_matches_from(words)?;
    let mut innermost = &matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    let json = innermost.try_get_one("json").is_ok_and(|json| json == Some(&true));
    Ok((Verb::from_arg_matches_mut(&mut matches)?, json))
}

/// What is wrong with a call, in one line.
fn what_is_wrong(words: &[String]) -> Option<String> {
    let line = std::iter::once("stillcore".to_owned()).chain(words.iter().cloned());
    let command = command();
    let (words, _) = names::current(&command, line.map(OsString::from).collect());
    let error = command.clone().try_get_matches_from(&words).err()?;
    Some(failure::explained(&error, &command, &words).what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_none_says_why_in_one_line() {
        let wrong = |line: &str| what_is_wrong(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(wrong("measure wakeup --cpus 1 --json"), None);
        assert_eq!(wrong("measur wakeup").unwrap(), "no command 'measur'");
        assert_eq!(wrong("resources --cpu 1 --kind irq"), None);
        assert!(wrong("measure wakeup --cpuss 1").unwrap().contains("--cpuss"));
        // Bounds of what is late need something that classifies.
        assert_eq!(wrong("graph run x --target y --late-percentage 30"), None);
        assert_eq!(wrong("graph run x --target y --tracking"), None);
        assert!(wrong("graph run x --late-percentage 30").is_some());
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    /// Marks in files, which look like commands.
    const MARKS: [&str; 2] = ["stillcore tail 1", "stillcore group"];

    /// Whether what a sentence has in backquotes is one command: no pattern, and no word in
    /// capitals that stands for a value.
    fn is_a_command(text: &str) -> bool {
        let mut words = text.split(' ');
        let capitals = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        !text.contains(['…', '|', '[', '<']) && !MARKS.contains(&text) && !words.any(capitals)
    }

    #[test]
    fn every_command_of_the_pages_is_accepted() {
        use ErrorKind::{
            DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand,
        };
        let (mut wrong, mut count) = (Vec::new(), 0);
        for page in pages::pages() {
            let shown = page.commands.iter().map(|shown| (&shown.text, false));
            let inline = page.inline.iter().filter(|text| is_a_command(text)).map(|text| (text, true));
            let calls = |(text, inline): (&String, bool)| {
                shell_words::calls(text).into_iter().map(move |call| (call, inline))
            };
            for (call, inline) in shown.chain(inline).flat_map(calls) {
                let text = call.join(" ");
                let words = std::iter::once("stillcore".to_owned()).chain(call);
                let (words, notes) = names::current(&command(), words.map(Into::into).collect());
                let refused = parse(command(), &words).err().filter(clap::Error::use_stderr);
                // A sentence may name a verb without its operands.
                let short =
                    [DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand];
                let refused = refused.filter(|error| !inline || !short.contains(&error.kind()));
                count += 1;
                if refused.is_some() || !notes.is_empty() {
                    wrong.push(format!("{}: stillcore {text}: {refused:?} {notes:?}", page.path));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        println!("{count} command lines are parsed");
        assert!(count > 250, "{count}");
    }

    #[test]
    fn only_a_verb_with_the_option_answers_in_json() {
        let json =
            |line: &str| parse(command(), &line.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap().1;
        assert!(json("stillcore audit --json") && json("stillcore measure spin --json"));
        assert!(!json("stillcore audit") && !json("stillcore sched generate"));
        assert!(!json("stillcore isolate run -- audit --json"));
    }
}

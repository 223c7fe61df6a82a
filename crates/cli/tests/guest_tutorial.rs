//! The tutorial is what it says: its ten commands, taken from the page, run one after another in a guest that was booted as a newcomer's
//! machine is, and in one booted with the words that the page has him add; and the core is stiller afterwards.
#![cfg(feature = "guest-tests")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::guest::{Boot, boot};
use support::read_json;

/// The page's parts: the commands below each of two headings.
struct Page {
    before: Vec<String>,
    after: Vec<String>,
    /// The words for the command line.
    words: String,
    /// The file of the task set.
    tasks: String,
}

fn page() -> Page {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = fs::read_to_string(file).unwrap();
    let commands = |part: &str| -> Vec<String> {
        part.lines().filter_map(|line| line.strip_prefix("    $ ")).map(str::to_owned).collect()
    };
    let plain = |start: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix("    ").filter(|line| line.starts_with(start)));
        line.unwrap_or_else(|| panic!("no line with {start}")).to_owned()
    };
    let (before, after) = text.split_once("## After").unwrap();
    Page {
        before: commands(before),
        after: commands(after),
        words: plain("isolcpus="),
        tasks: plain("{\"unit\""),
    }
}

#[test]
fn the_page_has_ten_commands() {
    let page = page();
    assert_eq!(page.before.len() + page.after.len(), 10);
    assert!(page.before.iter().chain(&page.after).all(|command| command.starts_with("stillcore ")));
}

/// Runs commands in a guest, and gives where it left its files.
fn run(commands: &[String], append: &str, tasks: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let listed = place.path().join("commands");
    fs::write(&listed, commands.join("\n") + "\n").unwrap();
    let set = place.path().join("tasks.jsonl");
    fs::write(&set, format!("{tasks}\n")).unwrap();
    let add = |file: &Path, name: &str| format!("{}:/root/{name}", file.display());
    let (listed, set) = (add(&listed, "commands"), add(&set, "tasks.jsonl"));
    let more = ["--add", &listed, "--add", &set, "--timeout", "600s"];
    boot(&Boot { kernel: "6.1", smp: "4", append, script: "guest_tutorial.sh", arguments: &[], more: &more })
}

/// What a command of the page printed, and how it ended.
fn ended(root: &Path, commands: &[String], part: &str) -> (i32, String) {
    let at = commands.iter().position(|command| command.contains(part)).unwrap_or_else(|| panic!("{part}"));
    let read = |name: &str| fs::read_to_string(root.join(format!("{name}-{}", at + 1))).unwrap();
    (read("status").trim().parse().unwrap(), format!("{}\n{}", read("out"), read("err")))
}

/// Events of a run on both CPUs, but for what the probe causes itself.
fn events(run: &Path) -> u64 {
    let analysis = read_json(&run.join("analysis.json"));
    let classes =
        analysis["events"].as_array().unwrap().iter().flat_map(|cpu| cpu["classes"].as_array().unwrap());
    classes.filter(|one| one["class"] != "self").map(|one| one["count"].as_u64().unwrap()).sum()
}

#[test]
fn a_newcomers_core_becomes_still() {
    let page = page();
    let plain = "isolcpus= nohz_full= rcu_nocbs= irqaffinity=";
    let (_first, before) = run(&page.before, plain, &page.tasks);
    let told = |root: &Path, commands: &[String], part: &str, status: i32| -> String {
        let (found, text) = ended(root, commands, part);
        assert_eq!(found, status, "{part}: {text}");
        text
    };
    told(&before, &page.before, "audit", 2);
    told(&before, &page.before, "measure wakeup", 0);
    told(&before, &page.before, "trace explain", 0);
    let plan = told(&before, &page.before, "isolate plan", 0);
    for word in page.words.split_whitespace().filter(|word| !word.starts_with("irqaffinity")) {
        let (parameter, _) = word.split_once('=').unwrap();
        assert!(plan.contains(&format!("{parameter}=")), "{word}: {plan}");
    }

    let (_second, after) = run(&page.after, &page.words, &page.tasks);
    let command_line =
        |run: &Path| -> Value { read_json(&run.join("machine-before.json"))["machine"]["cmdline"].clone() };
    assert!(
        command_line(&after.join("after")).as_str().unwrap().contains("nohz_full=2,3"),
        "the words of the page"
    );
    told(&after, &page.after, "isolate apply", 0);
    told(&after, &page.after, "isolate verify", 0);
    told(&after, &page.after, "measure wakeup", 0);
    told(&after, &page.after, "trace explain", 0);
    // In an emulated guest wake-ups are as late as its host is busy: either verdict is an answer.
    let (status, analysed) = ended(&after, &page.after, "sched analyze");
    assert!(matches!(status, 0 | 2) && analysed.contains("release jitter"), "{status}: {analysed}");
    told(&after, &page.after, "isolate undo", 0);

    let (first, second) = (events(&before.join("before")), events(&after.join("after")));
    println!("events on two CPUs in 5 s: {first} before, {second} after");
    assert!(second * 4 < first, "{first} before, {second} after");
}

//! The tutorial works as written: its ten commands, taken from the page, run one after another in a
//! guest booted like a newcomer's machine, and in one booted with the parameters that the page
//! adds. The core is stiller afterwards.

use crate::machine::{Case, Guest};
use crate::support::pages::{self, Shown, holds};
use crate::support::read_json;
use std::fs;
use std::path::Path;

/// The page's parts: the commands below each of two headings, with the output that it shows.
struct Page {
    before: Vec<Shown>,
    after: Vec<Shown>,
    /// The words for the command line.
    words: String,
    /// The file of the task set.
    tasks: String,
}

fn page() -> Page {
    let text = fs::read_to_string(pages::repository().join("docs/tutorial.md")).unwrap();
    let whole = pages::page("docs/tutorial.md".to_owned(), &text);
    let reboot = text.lines().position(|line| line.starts_with("## After")).unwrap();
    let (before, after) = whole.commands.iter().cloned().partition(|shown| shown.line <= reboot);
    let plain = |start: &str| {
        let block = whole.blocks.iter().find(|block| block.starts_with(start));
        block.unwrap_or_else(|| panic!("no block with {start}")).trim().to_owned()
    };
    Page { before, after, words: plain("isolcpus="), tasks: plain("{\"unit\"") }
}

/// The commands before the page's reboot, on a machine that is booted as a newcomer's is.
pub(crate) fn before() -> Case {
    let page = page();
    assert_eq!(page.before.len() + page.after.len(), 10, "commands of the page");
    assert!(page.before.iter().chain(&page.after).all(|shown| shown.text.starts_with("stillcore ")));
    part("tutorial-before", &page, &page.before, before_the_reboot)
}

/// Those behind it, on a machine that is booted with the words that the page has its reader add.
pub(crate) fn after() -> Case {
    let page = page();
    part("tutorial-after", &page, &page.after, after_the_reboot)
}

fn part(name: &'static str, page: &Page, commands: &[Shown], check: fn(&Guest)) -> Case {
    let lines: String = commands.iter().map(|shown| format!("{}\n", shown.text)).collect();
    let case = Case::new(name, "tutorial.sh", check).file("commands", lines);
    case.file("tasks.jsonl", format!("{}\n", page.tasks))
}

/// The output of a command of the page, which has to be as shown there, and its exit code.
fn ended(root: &Path, commands: &[Shown], part: &str) -> (i32, String) {
    let at = commands.iter().position(|shown| shown.text.contains(part)).unwrap_or_else(|| panic!("{part}"));
    let read = |name: &str| fs::read_to_string(root.join(format!("{name}-{}", at + 1))).unwrap();
    let (out, code) = (read("out"), read("status").trim().parse().unwrap());
    if let Err(line) = holds(&out, &commands[at].output) {
        panic!("docs/tutorial.md: {part}: exit {code}, no {line:?} there:\n{out}");
    }
    (code, format!("{out}\n{}", read("err")))
}

/// Events of a run on both CPUs, but for what the probe causes itself.
fn events(run: &Path) -> u64 {
    let analysis = read_json(&run.join("analysis.json"));
    let classes =
        analysis["events"].as_array().unwrap().iter().flat_map(|cpu| cpu["classes"].as_array().unwrap());
    classes.filter(|one| one["class"] != "self").map(|one| one["count"].as_u64().unwrap()).sum()
}

fn printed(guest: &Guest, commands: &[Shown], part: &str, status: i32) -> String {
    let (found, text) = ended(&guest.root, commands, part);
    assert_eq!(found, status, "{part}: {text}");
    text
}

fn before_the_reboot(guest: &Guest) {
    let page = page();
    printed(guest, &page.before, "audit", 2);
    printed(guest, &page.before, "measure wakeup", 0);
    printed(guest, &page.before, "trace explain", 0);
    let plan = printed(guest, &page.before, "isolate plan", 0);
    for word in page.words.split_whitespace().filter(|word| !word.starts_with("irqaffinity")) {
        let (parameter, _) = word.split_once('=').unwrap();
        assert!(plan.contains(&format!("{parameter}=")), "{word}: {plan}");
    }
    // A core that ticks is disturbed as often as its tick comes: 250 a second here, two CPUs, five
    // seconds. Ticks for which the host does not run an emulated CPU are merged into one.
    let events = events(&guest.root.join("before"));
    println!("events on two CPUs in 5 s before: {events}");
    assert!(events > STILL, "{events}");
}

fn after_the_reboot(guest: &Guest) {
    let page = page();
    let run = guest.root.join("after");
    let machine = read_json(&run.join("machine-before.json"))["machine"]["cmdline"].clone();
    for word in page.words.split_whitespace() {
        assert!(machine.as_str().unwrap().contains(word), "{word} of the page is not in {machine}");
    }
    printed(guest, &page.after, "isolate apply", 0);
    printed(guest, &page.after, "isolate verify", 0);
    printed(guest, &page.after, "measure wakeup", 0);
    printed(guest, &page.after, "trace explain", 0);
    // In an emulated guest wake-ups are as late as its host is busy: either verdict is an answer.
    let (status, analysed) = ended(&guest.root, &page.after, "sched analyze");
    assert!(matches!(status, 0 | 2) && analysed.contains("release jitter"), "{status}: {analysed}");
    printed(guest, &page.after, "isolate undo", 0);
    let events = events(&run);
    println!("events on two CPUs in 5 s after: {events}");
    assert!(events * 2 < STILL, "{events}");
}

/// Events on two CPUs in the page's five seconds: a newcomer's machine has more, with two of five
/// ticks at least; an isolated one has less than half of it.
const STILL: u64 = 1000;

//! `stillcore disturb` killed by SIGKILL: whatever the stressor, nothing of it is left, and the
//! machine is as it was.

use crate::support::{Place, stillcore};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Stressors that are killed at the same time: few, so that a small machine gets all of them to
/// begin.
const AT_ONCE: usize = 4;
/// The command says this once operations have begun.
const BEGUN: &str = "disturbing";

/// One stressor, running under a supervisor of its own.
struct Victim {
    name: String,
    place: Place,
    child: Child,
    /// All processes that descend from the supervisor.
    tree: BTreeSet<u32>,
}

impl Victim {
    fn start(name: &str) -> Self {
        let place = Place::new();
        let mut command = stillcore(&["disturb", name, "--duration", "60s"]);
        fs::create_dir(files(&place)).unwrap();
        command.arg("--state").arg(place.state()).arg("--dir").arg(files(&place));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Self { name: name.to_owned(), place, child, tree: BTreeSet::new() }
    }

    /// Waits until it disturbs. One that is absent here ends by itself.
    fn wait_until_it_disturbs(&mut self) {
        let stderr = self.child.stderr.take().unwrap();
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let begun = lines.any(|line| line.starts_with(BEGUN));
        assert!(begun, "{} did not begin", self.name);
    }

    fn kill(&mut self) {
        // It may have ended by itself. It is not reaped, so its process id is still valid.
        let _ =
            Command::new("kill").args(["-KILL", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        self.child.wait().unwrap();
    }

    /// Whether there is a stressor besides the guardian.
    fn runs(&self) -> bool {
        self.tree.len() > 1
    }

    /// Processes of its tree, its files, and whatever is named after it.
    fn left(&self) -> Vec<String> {
        let alive = self.tree.iter().filter(|pid| alive(**pid)).map(|pid| format!("process {pid}"));
        let files = fs::read_dir(files(&self.place)).unwrap();
        let files = files.map(|file| format!("file {}", file.unwrap().path().display()));
        alive.chain(files).chain(self.place.leftovers()).chain(named_after(self.child.id())).collect()
    }
}

/// Where its stressors make files.
fn files(place: &Place) -> PathBuf {
    place.state().with_file_name("files")
}

#[test]
fn whatever_is_killed_leaves_nothing() {
    let list = crate::support::answer(&mut stillcore(&["disturb", "--list", "--json"]), 0);
    let stressors: Vec<&Value> =
        list["stressors"].as_array().unwrap().iter().filter(|spec| spec["dangerous"] == false).collect();
    assert!(stressors.len() > 5);
    let before = machine(&stressors);
    let (mut ran, mut longest) = (0, Duration::ZERO);
    for some in stressors.chunks(AT_ONCE) {
        let mut victims: Vec<Victim> =
            some.iter().map(|spec| Victim::start(spec["name"].as_str().unwrap())).collect();
        victims.iter_mut().for_each(Victim::wait_until_it_disturbs);
        std::thread::sleep(Duration::from_millis(300));
        victims.iter_mut().for_each(|victim| victim.tree = descendants(victim.child.id()));
        ran += victims.iter().filter(|victim| victim.runs()).count();
        victims.iter_mut().for_each(Victim::kill);
        let killed = Instant::now();
        for victim in &victims {
            settled(&victim.name, || victim.left());
        }
        longest = longest.max(killed.elapsed());
    }
    println!(
        "{ran} of {} stressors ran; the last trace of any was gone {longest:.1?} after SIGKILL",
        stressors.len()
    );
    assert!(ran > 5, "only {ran} of {} stressors ran here", stressors.len());
    // Other tests run at the same time: only new leftovers count.
    settled("the machine", || machine(&stressors).difference(&before).cloned().collect());
}

/// Waits until nothing is left. The duration is not tested.
fn settled(who: &str, left: impl Fn() -> Vec<String>) {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let now = left();
        if now.is_empty() {
            return;
        }
        assert!(Instant::now() < give_up, "{who} has left {now:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn descendants(pid: u32) -> BTreeSet<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let direct: Vec<u32> = children
        .flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .collect();
    direct.iter().copied().chain(direct.iter().flat_map(|child| descendants(*child))).collect()
}

/// A zombie that its new parent has not yet reaped counts as dead.
fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}

/// Tracing instances, events and control groups with this process id in their name.
fn named_after(pid: u32) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mut found = Vec::new();
    for line in mounts.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let target = PathBuf::from(words[1]);
        let dir = match words[2] {
            "tracefs" => target.join("instances"),
            "cgroup" | "cgroup2" => target.clone(),
            _ => continue,
        };
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        found.extend(names.map(|entry| entry.path().display().to_string()));
        let events = fs::read_to_string(target.join("kprobe_events")).unwrap_or_default();
        found.extend(events.lines().map(str::to_owned));
    }
    let pid = pid.to_string();
    let mentions = |name: &String| {
        let last = name.rsplit('/').next().unwrap_or_default();
        let ours = name.contains("stillcore");
        ours && last.split(|letter: char| !letter.is_ascii_digit()).any(|number| number == pid)
    };
    found.into_iter().filter(mentions).collect()
}

/// Changes of stressors without a process id in their name: values, links, loop devices, mounts,
/// modules.
fn machine(stressors: &[&Value]) -> BTreeSet<String> {
    let names = |dir: &str| -> Vec<String> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect()
    };
    let mut all: BTreeSet<String> = names("/sys/class/net").into_iter().chain(names("/sys/module")).collect();
    all.extend(names("/sys/block").into_iter().filter(|block| PathBuf::from(block).join("loop").exists()));
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    all.extend(mounts.lines().map(|line| format!("mount {line}")));
    for path in stressors.iter().flat_map(|spec| spec["writes"].as_array().unwrap()) {
        let path = path.as_str().unwrap();
        if let Ok(value) = fs::read_to_string(path) {
            all.insert(format!("{path} {}", value.trim()));
        }
    }
    all
}

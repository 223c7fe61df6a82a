//! Loads beside the very programs that the papers ran: hackbench and bonnie++ (OSPERT 2013, section
//! 3.3), stress-ng's disk and timer stressors, and the whole stress-ng line of the replication of
//! the RTSS 2024 paper. Same CPUs, same numbers of processes and messages, same sizes.

use crate::common::Failed;
use crate::load::{BEGIN, Count, Load, disk_of, seconds_of_hackbench};
use crate::{Pair, Plan};
use result::{Limit, Of};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Groups of hackbench by default, and the processes of a side of each.
const GROUPS: f64 = 10.0;
const SIDE: f64 = 20.0;
/// Loops with which hackbench is asked for its speed here.
const TRIAL: u32 = 10;
/// Of the rate of the original.
const ENOUGH: f64 = 0.9;

/// A pair that this machine cannot have.
pub(crate) struct Unavailable {
    pub(crate) name: &'static str,
    pub(crate) why: String,
}

/// Those that this machine can have; why not for the others.
pub(crate) fn pairs(plan: &Plan, dir: &Path) -> Result<Vec<Result<Pair, Unavailable>>, Failed> {
    let disk = disk_of(dir);
    let on_disk = |pair: &dyn Fn(&Path) -> Pair, name: &'static str| match &disk {
        Some(disk) => Ok(pair(disk)),
        None => Err(Unavailable { name, why: format!("{} is on no disk", dir.display()) }),
    };
    Ok(vec![
        hackbench(plan)?
            .ok_or_else(|| Unavailable { name: "hackbench", why: "hackbench is not installed".to_owned() }),
        on_disk(&|disk| bonnie(plan, dir, disk), "direct_io (bonnie++)"),
        on_disk(&|disk| iomix(plan, dir, disk), "iomix (disk)"),
        Ok(timer(plan)),
        Ok(replication(plan)),
    ])
}

fn on(plan: &Plan, words: &str) -> Vec<String> {
    let mut all = vec!["taskset".to_owned(), "-c".to_owned(), plan.cpu.to_string()];
    all.extend(words.split_whitespace().map(str::to_owned));
    all
}

/// It ends after so many loops, and is given as many as take as long as ours.
fn hackbench(plan: &Plan) -> Result<Option<Pair>, Failed> {
    let words = |loops: u32| on(plan, &format!("hackbench -g {GROUPS} -l {loops}"));
    let trial = words(TRIAL);
    let output = Command::new(&trial[0]).args(&trial[1..]).stderr(Stdio::null()).output()?;
    let Some(seconds) = seconds_of_hackbench(&String::from_utf8_lossy(&output.stdout)) else {
        return Ok(None);
    };
    let wanted = (BEGIN + plan.window).as_secs_f64() + 0.5;
    let loops = (f64::from(TRIAL) * wanted / seconds.max(1e-3)).ceil() as u32;
    let messages = GROUPS * SIDE * SIDE * f64::from(loops);
    let ours = plan.ours(&["hackbench"], plan.window);
    let theirs = Load {
        name: format!("hackbench -g {GROUPS}"),
        words: words(loops),
        count: Count::Messages(messages),
        window: Some(plan.window),
    };
    Ok(Some(Pair::of("hackbench", ours, theirs, "a message of 100 bytes received").with(Of::Ratio, ENOUGH)))
}

/// All its parts, from beginning to end; ours for about as long.
fn bonnie(plan: &Plan, dir: &Path, disk: &Path) -> Pair {
    let count = Count::Requests(disk.to_owned());
    let dir = dir.display().to_string();
    let mut ours = plan.ours(&["direct_io", "--dir", &dir], plan.window.max(Duration::from_secs(3)));
    ours.count = count.clone();
    let words = format!("bonnie++ -D -f -q -u root -m bench -d {dir} -s 64 -r 32 -n 1");
    let theirs = Load { name: "bonnie++ -D".to_owned(), words: on(plan, &words), count, window: None };
    Pair::of("direct_io (bonnie++)", ours, theirs, "a request that the disk completed")
        .with(Of::Ratio, ENOUGH)
}

fn iomix(plan: &Plan, dir: &Path, disk: &Path) -> Pair {
    let count = Count::Requests(disk.to_owned());
    let dir = dir.display().to_string();
    let mut ours = plan.ours(&["iomix", "--dir", &dir], plan.window);
    ours.count = count.clone();
    let theirs = stress_ng(plan, &format!("--iomix 1 --iomix-bytes 64m --temp-path {dir}"), count);
    Pair::of("iomix (disk)", ours, theirs, "a request that the disk completed")
}

fn timer(plan: &Plan) -> Pair {
    let theirs = plan.ours(&["stress-ng:timer"], plan.window);
    Pair::of("timer (--timer)", plan.ours(&["timer"], plan.window), theirs, "an expiry that happened")
}

/// What its stress-ng line does by ours and by stress-ng itself, each with the four programs.
fn replication(plan: &Plan) -> Pair {
    let suite = |name: &str| {
        let mut load = plan.ours(&["--suite", name], plan.window);
        (load.count, load.name) = (Count::Nothing, name.to_owned());
        load
    };
    Pair::of(
        "replication25",
        suite("replication25"),
        suite("replication25-stress-ng"),
        "those of ten stressors",
    )
}

fn stress_ng(plan: &Plan, words: &str, count: Count) -> Load {
    let seconds = (BEGIN + plan.window).as_secs() + 1;
    let words = on(plan, &format!("stress-ng --quiet --timeout {seconds}s {words}"));
    Load { name: "stress-ng".to_owned(), words, count, window: Some(plan.window) }
}

impl Pair {
    fn with(mut self, of: Of, least: f64) -> Self {
        self.budget = Some((of, Limit::AtLeast(least)));
        self
    }
}

//! `perf_stat`: the other stressors run under counters, as the RTSS 2024 paper's Table IV has it
//! ("run above task under perf monitor").
//!
//! Each operation is a `perf stat` of a short process of its own, and a `perf stat -p` of every
//! other stressor of the same disturbance meanwhile: counters with heirs, opened and closed around
//! it. With counters open every switch, fork and exit of the others goes through
//! kernel/events/core.c (`__perf_event_task_sched_out`, `perf_event_init_task`,
//! `perf_event_exit_task`).

use crate::Error;
use crate::account::Account;
use crate::counters::{Page, lacking, of_task, of_this_task};
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::workers::exit_now;
use model::stressor::Witness;
use perf_event::Counter;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::{fs, io};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "perf_stat",
    title: "perf stat: a short process of its own, and all other stressors, under counters with heirs",
    class: "poke",
    operation: "counters opened, a process made that faults a page and ends, counters read and closed",
    needs: "perf_event_open; kernel.perf_event_paranoid of 2 at most for ordinary users",
    kernel_paths: &[
        "perf_event_open",
        "perf_event_init_task",
        "perf_event_exit_task",
        "static_key_enable(perf_sched_events)",
    ],
    witness: "page faults that the counters have counted: one an operation",
    danger: "switches and forks of the other stressors cost more",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let page = Page::new()?;
    drop(of_this_task(true).map_err(lacking)?);
    job.begin()?;
    let (mut seen, supervisor) = (0, job.supervisor);
    let done = job.repeat(|| {
        let mut own = of_this_task(true)?;
        let others = others(supervisor).filter_map(watched).collect::<io::Result<Vec<_>>>()?;
        fault_and_wait(&page)?;
        seen += own.read()?;
        drop(others);
        Ok(())
    });
    let witness = Witness { name: "page faults counted".to_owned(), expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}

/// The counter of another stressor; none for one that has ended meanwhile.
fn watched(pid: i32) -> Option<io::Result<Counter>> {
    match of_task(pid) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        result => Some(result),
    }
}

/// The other stressors of the same supervisor. Its other children are left alone: some of them
/// measure.
fn others(supervisor: i32) -> impl Iterator<Item = i32> {
    let threads = fs::read_dir(format!("/proc/{supervisor}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let me = getpid().as_raw_nonzero().get();
    let pids: Vec<i32> = children
        .flat_map(|text| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>())
        .filter(|pid| {
            *pid != me && is_stressor(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        })
        .collect();
    pids.into_iter()
}

/// By the hidden verb that a supervisor starts its stressors with. One that another program is
/// about to turn into is not one yet.
fn is_stressor(command: &[u8]) -> bool {
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    words.get(1..3).is_some_and(|verb| verb == [&b"internal"[..], &b"stress"[..]])
}

fn fault_and_wait(page: &Page) -> io::Result<()> {
    // SAFETY: the stressor has one thread, so no lock is held by a thread that the copy lacks; the
    // copy faults a page and leaves.
    match unsafe { libc::fork() } {
        0 => exit_now(i32::from(page.fault().is_err())),
        -1 => Err(io::Error::last_os_error()),
        pid => match waitpid(Pid::from_raw(pid), WaitOptions::empty())? {
            Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
            _ => Err(Errno::CHILD.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stressors_are_watched() {
        assert!(is_stressor(b"/bin/stillcore\0internal\0stress\0u_fork\0{}\0"));
        assert!(!is_stressor(b"/bin/stillcore\0internal\0probe\0{}\0"));
        assert!(!is_stressor(b"/usr/bin/setpriv\0--reuid\0stillcore\0internal\0stress\0u_fork\0"));
        assert!(!is_stressor(b""));
    }
}

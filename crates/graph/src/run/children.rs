//! The processes of a graph: how one is started, and what it says when it ends.

use super::order::{ExecutorOrder, LinkEnd, ProcessOrder, ProcessReport};
use crate::Error;
use crate::run::request::Order;
use crate::transport::{Doorbell, Link, Parcel};
use measure::job::files::Copy;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use sys::{memory, pipes, spawn};

/// A process of the graph.
pub(super) struct Process {
    pub(super) name: String,
    pub(super) child: Child,
    /// Its executors' numbers.
    pub(super) executors: Vec<usize>,
    /// The text of its report as far as it has come.
    text: Vec<u8>,
    /// What it said at its end.
    pub(super) report: Option<ProcessReport>,
    /// Why it ended early.
    pub(super) died: Option<String>,
}

impl Process {
    /// Reads what has come of the report, without waiting: the process may be stopped.
    pub(super) fn take_report(&mut self) -> Taken {
        let Some(stdout) = &mut self.child.stdout else { return Taken::Ended(None) };
        if !is_whole(stdout, &mut self.text) {
            return Taken::NotYet;
        }
        self.child.stdout = None;
        Taken::Ended(serde_json::from_slice(&self.text).ok())
    }
}

/// The state of a report.
pub(super) enum Taken {
    /// More may come.
    NotYet,
    /// The process closed its output, with a valid report or without one.
    Ended(Option<ProcessReport>),
}

/// Reads what a pipe holds; returns whether its other end is closed.
fn is_whole(pipe: &mut impl Read, text: &mut Vec<u8>) -> bool {
    let read = pipe.read_to_end(text);
    !matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that still runs has nothing to undo, and its parent is giving up.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Starts the process at a position of the graph.
pub(super) fn start(
    program: &Path,
    order: &Order<'_>,
    at: usize,
    links: &[Link],
    rings: &[OwnedFd],
    bells: &[Doorbell],
) -> Result<Process, Error> {
    let plan = order.plan;
    let name = plan.graph.processes[at].name.clone();
    let failed = |source| Error::os("start", format!("process {name} of the graph"), source);
    let copy = copy_of(order, at);
    let mut parcel = Parcel::default();
    // The order itself has the first number; its text is written when all the others are known.
    let paper = memory::shared_file("stillcore-graph", 0).map_err(failed)?;
    parcel.put(paper.try_clone().map_err(failed)?);
    let mut ends = Vec::new();
    for ((edge, link), number) in plan.edges.iter().zip(links).zip(0..) {
        let here = [edge.from, edge.to].map(|end| plan.process_of(end.node) == at);
        ends.extend(match here {
            [true, true] => Some((number, LinkEnd::Pair(link.pair_order(&mut parcel)?))),
            [true, false] => Some((number, LinkEnd::Sender(link.sender_order(&mut parcel)?))),
            [false, true] => Some((number, LinkEnd::Receiver(link.receiver_order(&mut parcel)?))),
            [false, false] => None,
        });
    }
    let executors: Vec<_> = plan
        .graph
        .executors
        .iter()
        .enumerate()
        .filter(|(_, one)| one.process == at)
        .map(|(at, _)| at)
        .collect();
    let mut orders = Vec::new();
    for &executor in &executors {
        let nodes = plan.graph.nodes.iter().enumerate().filter(|(_, node)| node.executor == executor);
        orders.push(ExecutorOrder {
            number: executor as u32,
            cpus: plan.cpus[executor].clone(),
            policy: plan.policies[executor].clone(),
            timer_slack_ns: plan.options.timer_slack_ns,
            threads: plan.graph.executors[executor].threads,
            ring: parcel.put(rings[executor].try_clone().map_err(failed)?),
            bell: bells[executor].order(&mut parcel)?,
            nodes: nodes.map(|(node, _)| plan.node_order(node)).collect(),
        });
    }
    let text = serde_json::to_string(&ProcessOrder {
        name: name.clone(),
        duration_ns: plan.options.duration_ns,
        files: copy.map(|copy| copy.files.clone()),
        executors: orders,
        links: ends,
    });
    let text = text.map_err(|error| failed(error.into()))?;
    File::from(paper).write_all(text.as_bytes()).map_err(failed)?;
    let own_program = copy.and_then(|copy| copy.program.as_deref());
    let mut command = Command::new(own_program.unwrap_or(program));
    command.args(["internal", "graph", &parcel.descriptors().len().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn::die_with_parent(&mut command);
    spawn::share_all(&mut command, parcel.descriptors());
    let child = command.spawn().map_err(failed)?;
    let waits = child.stdout.as_ref().map_or(Ok(()), pipes::never_wait).map_err(failed);
    let process = Process { name, child, executors, text: Vec::new(), report: None, died: None };
    waits.map(|()| process)
}

/// The files of a process: those of its copy of the graph.
fn copy_of<'a>(order: &Order<'a>, process: usize) -> Option<&'a Copy> {
    let each = order.plan.graph.processes.len() / (order.plan.options.copies as usize).max(1);
    order.files?.copies.get(process / each.max(1))
}

/// What a process said before it died, and how it did.
pub(super) fn said(child: &mut Child) -> String {
    let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    if said.trim().is_empty() { status } else { format!("{} ({status})", said.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process may be stopped in the middle of its report.
    #[test]
    fn half_a_report_is_not_waited_for() {
        let (mut from, mut to) = std::io::pipe().unwrap();
        pipes::never_wait(&from).unwrap();
        let mut text = Vec::new();
        assert!(!is_whole(&mut from, &mut text));
        to.write_all(b"{\"name\":").unwrap();
        assert!(!is_whole(&mut from, &mut text));
        to.write_all(b"1}").unwrap();
        drop(to);
        assert!(is_whole(&mut from, &mut text));
        assert_eq!(text, b"{\"name\":1}");
    }
}

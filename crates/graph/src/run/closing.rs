//! The end of a run: closes files and accounts, and adds the reports of the processes.

use super::carry_out::{EdgeRun, Measured, Running, Store, meta};
use super::order::TimerReport;
use crate::Error;
use crate::results::accounts::Account;
use crate::transport::Link;
use model::probe::{ProbeDetail, Served};
use model::run::{ProbeRecord, Window};
use model::sample::ProbeKind;
use std::collections::BTreeMap;

impl Running<'_> {
    /// Closes files and accounts.
    pub(super) fn finish(mut self, window: Window, stopped: bool) -> Result<Measured, Error> {
        self.poll(None)?;
        let balances = self.links.iter().map(Link::settle).collect::<Result<Vec<_>, _>>()?;
        let notes = self.links.iter().map(|link| link.facts().notes.clone());
        let edges = self.edges.iter().zip(balances).zip(notes).map(|((edge, balance), notes)| EdgeRun {
            account: Account::of(&balance, edge.tracker.received),
            latencies: edge.arrivals.latencies(),
            tracker: edge.tracker,
            notes,
        });
        let edges: Vec<_> = edges.collect();
        let mut limits = self.order.plan.unmatched.clone();
        let mut notes: Vec<String> = edges.iter().flat_map(|edge| edge.notes.iter().cloned()).collect();
        let mut nothing_taken = 0;
        if self.events.beyond > 0 {
            limits.push(format!("{} more events than events.txt holds", self.events.beyond));
        }
        let mut probes = Vec::new();
        let (mut timers, mut publishers) = (Vec::new(), Vec::new());
        let mut outputs = [0; 2];
        let stores = std::mem::take(&mut self.stores);
        for (at, store) in stores.into_iter().enumerate() {
            let record = self.record(at, store, &window, &edges)?;
            probes.push(record);
        }
        for process in &self.processes {
            let Some(report) = &process.report else { continue };
            let unlocked = report.memory_unlocked.iter();
            notes.extend(
                unlocked.map(|why| format!("process {}: its memory is not locked ({why})", process.name)),
            );
            for executor in &report.executors {
                let name = &self.order.plan.graph.executors[executor.number as usize].name;
                let said = executor.policy_refused.iter().chain(&executor.failed);
                notes.extend(said.map(|why| format!("executor {name}: {why}")));
                nothing_taken += executor.nothing_taken;
                timers.extend(executor.timers.iter().cloned());
                publishers.extend(executor.publishers.iter().cloned());
                outputs[0] += executor.outputs_compared;
                outputs[1] += executor.outputs_wrong;
            }
        }
        limits.extend(timers.iter().filter_map(unsignalled));
        if nothing_taken > 0 {
            limits.push(format!(
                "at {nothing_taken} releases timers found nothing to take, and published nothing"
            ));
        }
        limits.extend(folded(&notes));
        Ok(Measured {
            window,
            probes,
            edges,
            timers,
            publishers,
            processes: self.usage.processes.clone(),
            resources: std::mem::take(&mut self.usage.rows),
            events: std::mem::take(&mut self.events.kept),
            outputs,
            limits,
            stopped,
            stopped_at: self.stopped_at,
            died: self.processes.iter().filter_map(|process| process.died.clone()).collect(),
        })
    }

    /// Closes the samples file of an executor; what it did.
    fn record(
        &self,
        at: usize,
        store: Store,
        window: &Window,
        edges: &[EdgeRun],
    ) -> Result<ProbeRecord, Error> {
        let plan = self.order.plan;
        let cpus = &plan.cpus[at];
        let cpu = cpus.iter().next().unwrap_or(0);
        let process = self.processes.iter().find(|process| process.executors.contains(&at));
        let report = process.and_then(|process| process.report.as_ref());
        let report = report.and_then(|report| {
            let own = report.executors.iter().find(|one| one.number as usize == at)?;
            Some((report.rss_kib, own))
        });
        let policy = plan.policies[at].clone();
        // What a killed process got is unknown.
        let effective = report.map_or_else(|| policy.clone(), |(_, own)| own.policy_effective.clone());
        let meta = meta(self.order, at, &window.phase, effective.clone());
        let samples = store.writer.finish(&meta)?;
        let mut account = Account::default();
        let here = plan.edges.iter().zip(edges);
        here.filter(|(edge, _)| plan.graph.nodes[edge.to.node].executor == at)
            .for_each(|(_, edge)| account += edge.account);
        let served = Served { released: account.sent, missed: account.lost() - account.unstored };
        let mut record = ProbeRecord {
            detail: ProbeDetail::Graph(served),
            phase: window.phase.clone(),
            thread: at as u32,
            cpus: (cpus.len() > 1).then(|| cpus.clone()),
            pid: process.map_or(0, |process| process.child.id() as i32),
            file: store.file,
            t0_ns: self.start_ns,
            t1_ns: window.t1_ns,
            counter: "CLOCK_MONOTONIC".to_owned(),
            policy_effective: effective,
            samples,
            ring_lost: account.unstored,
            ..ProbeRecord::of(ProbeKind::Graph, cpu, policy)
        };
        if let Some((rss_kib, own)) = report {
            record.tid = own.tids.first().copied().unwrap_or(0);
            record.timer_slack_ns = own.timer_slack_ns;
            (record.faults, record.switches) = (own.used.faults, own.used.switches);
            (record.cpu_time_ns, record.rss_kib) = (own.cpu_time_ns, rss_kib);
        }
        Ok(record)
    }
}

/// A sentence if releases passed without a signal.
fn unsignalled(timer: &TimerReport) -> Option<String> {
    let count = timer.missed - timer.overruns?.min(timer.missed);
    (count > 0).then(|| {
        format!("timer {}: {count} releases had no signal when the run was over, and are missed", timer.name)
    })
}

/// Folds notes (`subject: what`): the same note of several subjects appears once.
fn folded(notes: &[String]) -> Vec<String> {
    let mut subjects: BTreeMap<&str, (&str, u64)> = BTreeMap::new();
    for note in notes {
        let (subject, what) = note.split_once(": ").unwrap_or(("", note));
        subjects.entry(what).or_insert((subject, 0)).1 += 1;
    }
    let sentence = |(what, (subject, count)): (&str, (&str, u64))| match count {
        1 => format!("{subject}: {what}"),
        more => format!("{subject} and {} more: {what}", more - 1),
    };
    subjects.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_note_of_several_is_written_once() {
        let notes = ["link a: it is short", "link b: it is long", "link c: it is short"].map(str::to_owned);
        assert_eq!(folded(&notes), ["link b: it is long", "link a and 1 more: it is short"]);
    }
}

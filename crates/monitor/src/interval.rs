//! What happened between two times that things stood so and so.

use model::monitor::{FateCount, InterferenceStatus, OffenceSum, Status};
use model::monitor_history::{Interval, SCHEMA, ThreadInterval};
use std::collections::HashMap;

/// Machine and kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Release of its kernel.
    pub kernel: String,
}

/// From `before` to `after` of the same monitor; from its start where there is no `before`.
pub fn between(before: Option<&Status>, after: &Status, host: &Host) -> Interval {
    let since = |of: fn(&Status) -> u64| of(after).saturating_sub(before.map_or(0, of));
    let steal = |(at, ns): (usize, &u64)| {
        ns.saturating_sub(before.and_then(|before| before.steal_ns.get(at)).copied().unwrap_or(0))
    };
    Interval {
        schema: SCHEMA.to_owned(),
        at: after.at.clone(),
        watched_ns: since(|status| status.watched_ns),
        host: host.name.clone(),
        kernel: host.kernel.clone(),
        version: after.version.clone(),
        cpus: after.cpus.clone(),
        threads_watched: after.threads_watched.clone(),
        limit_ns: after.limit_ns,
        threads: threads(before, after),
        interference: interference(before, after),
        offences: after.callers_shown.then(|| offences(before, after)),
        breaches: breaches(before, after),
        events: since(|status| status.cost.events),
        lost_events: since(|status| status.lost_events),
        unjudged: since(|status| status.unjudged),
        steal_ns: after.steal_ns.iter().enumerate().map(steal).collect(),
        throttled: throttled(before, after),
        cpu_ns: since(|status| status.cost.process_ns + status.cost.children_ns),
    }
}

fn throttled(before: Option<&Status>, after: &Status) -> Option<Vec<u64>> {
    let was = before.and_then(|before| before.throttled.as_ref());
    let since =
        |(at, now): (usize, &u64)| now.saturating_sub(was.and_then(|was| was.get(at)).copied().unwrap_or(0));
    after.throttled.as_ref().map(|all| all.iter().enumerate().map(since).collect())
}

fn threads(before: Option<&Status>, after: &Status) -> Vec<ThreadInterval> {
    let rows = before.iter().flat_map(|status| &status.threads);
    let known: HashMap<_, _> = rows.map(|row| ((row.comm.as_str(), row.cpu), &row.latency)).collect();
    let row = |row: &model::monitor::ThreadStatus| {
        let was = known.get(&(row.comm.as_str(), row.cpu)).copied().cloned().unwrap_or_default();
        let mut counts = row.latency.counts;
        counts.iter_mut().zip(was.counts).for_each(|(now, was)| *now = now.saturating_sub(was));
        let sum_ns = row.latency.sum_ns.saturating_sub(was.sum_ns);
        ThreadInterval { comm: row.comm.clone(), cpu: row.cpu, counts, sum_ns }
    };
    after.threads.iter().map(row).filter(|row| row.counts.iter().any(|count| *count > 0)).collect()
}

fn interference(before: Option<&Status>, after: &Status) -> Vec<InterferenceStatus> {
    let rows = before.iter().flat_map(|status| &status.interference);
    let known: HashMap<_, _> =
        rows.map(|row| ((row.cpu, row.class, row.source.as_str()), (row.count, row.ns))).collect();
    let row = |row: &InterferenceStatus| {
        let key = (row.cpu, row.class, row.source.as_str());
        let (count, ns) = known.get(&key).copied().unwrap_or_default();
        let (count, ns) = (row.count.saturating_sub(count), row.ns.saturating_sub(ns));
        InterferenceStatus { count, ns, ..row.clone() }
    };
    after.interference.iter().map(row).filter(|row| row.count > 0 || row.ns > 0).collect()
}

fn offences(before: Option<&Status>, after: &Status) -> Vec<OffenceSum> {
    let row = |row: &OffenceSum| {
        let was = before.and_then(|before| before.offence_sums.iter().find(|was| was.class == row.class));
        let (count, ns) = was.map_or((0, 0), |was| (was.count, was.ns));
        let (count, ns) = (row.count.saturating_sub(count), row.ns.saturating_sub(ns));
        OffenceSum { class: row.class, count, ns }
    };
    after.offence_sums.iter().map(row).filter(|row| row.count > 0).collect()
}

fn breaches(before: Option<&Status>, after: &Status) -> Vec<FateCount> {
    let row = |row: &FateCount| {
        let same = |other: &&FateCount| FateCount { count: row.count, ..(*other).clone() } == *row;
        let was = before.and_then(|before| before.breaches.iter().find(same)).map_or(0, |row| row.count);
        FateCount { count: row.count.saturating_sub(was), ..row.clone() }
    };
    after.breaches.iter().map(row).filter(|row| row.count > 0).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::EventClass;
    use model::monitor::{BreachKind, Buckets, Cost, STATUS, ThreadStatus};

    pub(crate) fn status(hours: u64, latencies: &[u64], irq_ns: u64, kept: u64) -> Status {
        let mut latency = Buckets::default();
        latencies.iter().for_each(|ns| latency.add(*ns));
        let kinds = [("kept", kept), ("dropped", 1)];
        let fate = |(fate, count): (&str, u64)| FateCount {
            kind: BreachKind::Wakeup,
            fate: fate.to_owned(),
            why: None,
            count,
        };
        Status {
            schema: STATUS.to_owned(),
            version: "1".to_owned(),
            pid: 7,
            began: "2026-01-01T00:00:00Z".to_owned(),
            at: format!("2026-01-{:02}T{:02}:00:00Z", 1 + hours / 24, hours % 24),
            watched_ns: hours * 3_600_000_000_000,
            cpus: model::Cpus::one(2),
            threads_watched: "real-time threads".to_owned(),
            limit_ns: 1_000_000,
            interference_limit_ns: None,
            threads: vec![ThreadStatus { comm: "control".to_owned(), cpu: 2, latency }],
            interference: vec![InterferenceStatus {
                cpu: 2,
                class: EventClass::Irq,
                source: "eth0".to_owned(),
                count: irq_ns / 10,
                ns: irq_ns,
            }],
            offences: Vec::new(),
            offence_sums: vec![OffenceSum { class: EventClass::IpiCall, count: 3 * hours, ns: 30 * hours }],
            offences_unnamed: 0,
            callers_shown: true,
            breaches: kinds.map(fate).to_vec(),
            last: None,
            kept_bytes: 0,
            quota_bytes: 0,
            given_up: 0,
            lost_events: 3 * hours,
            unjudged: hours,
            drifted: None,
            steal_ns: vec![5 * hours],
            throttled: Some(vec![hours]),
            actions: None,
            cost: Cost { process_ns: 7 * hours, children_ns: hours, events: 100 * hours, ..Cost::default() },
            limits: Vec::new(),
        }
    }

    #[test]
    fn an_interval_has_what_came_in_it_alone() {
        let host = Host { name: "a".to_owned(), kernel: "6.12".to_owned() };
        let (first, then) = (status(1, &[500], 100, 2), status(3, &[500, 800, 4_000], 100, 5));
        let begun = between(None, &first, &host);
        assert_eq!((begun.threads[0].counts[0], begun.interference[0].ns), (1, 100));
        let later = between(Some(&first), &then, &host);
        assert_eq!(
            (later.threads[0].counts[0], later.threads[0].counts[2], later.threads[0].sum_ns),
            (1, 1, 4_800)
        );
        assert!(later.interference.is_empty(), "there was none");
        assert_eq!(begun.offences.unwrap()[0].count, 3);
        assert_eq!(later.offences, Some(vec![OffenceSum { class: EventClass::IpiCall, count: 6, ns: 60 }]));
        let unseen = Status { callers_shown: false, ..then.clone() };
        assert_eq!(between(Some(&first), &unseen, &host).offences, None);
        assert_eq!((later.breaches.len(), later.breaches[0].count), (1, 3));
        assert_eq!((later.events, later.lost_events, later.unjudged, later.cpu_ns), (200, 6, 2, 16));
        assert_eq!((later.watched_ns, later.steal_ns[0]), (2 * 3_600_000_000_000, 10));
        assert_eq!((begun.throttled, later.throttled), (Some(vec![1]), Some(vec![2])));
        let unseen = Status { throttled: None, ..then };
        assert_eq!(between(Some(&first), &unseen, &host).throttled, None);
    }
}

//! How the jobs of one process went over time, for charts: the paper's Figs. 3 to 9 (one value a
//! job) and 10 to 12 (dates of wake-ups).

use super::{Row, drift, wake_ups};
use serde::{Deserialize, Serialize};
use stats::slots::{Slot, slots};

/// Values over time; each list holds `[t_ns, least, most]` of slots of equal length, empty ones
/// left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OverTime {
    /// Clock from before the job to behind it, ns.
    pub execution_ns: Vec<Slot>,
    /// CPU time in between, ns.
    pub cpu_ns: Vec<Slot>,
    /// From the intended release to the end, ns.
    pub response_ns: Vec<Slot>,
    /// Execution time less CPU time (Fig. 8), ns.
    pub off_cpu_ns: Vec<Slot>,
    /// Wake-up date less that on the grid of nominal periods through the first (Fig. 10), ns.
    pub wake_up_off_ns: Vec<Slot>,
    /// First difference of wake-up dates less the period (Figs. 11 and 12), ns.
    pub difference_ns: Vec<Slot>,
}

impl OverTime {
    pub(super) fn of(rows: &[Row], period_ns: u64) -> Self {
        let of = |value: &dyn Fn(&Row) -> i64| {
            slots(&rows.iter().map(|row| (row.sample.t_ns, value(row))).collect::<Vec<_>>())
        };
        let execution = |row: &Row| row.end_ns.saturating_sub(row.start_ns);
        let period = period_ns.clamp(1, i64::MAX as u64) as i64;
        let dates = wake_ups(rows);
        let first = dates.first().copied().unwrap_or_default();
        let off = dates.iter().map(|&date| (date.1, drift::off_grid(date, first, period)));
        let neighbours = dates.windows(2).filter(|pair| pair[1].0 == pair[0].0.saturating_add(1));
        let differences =
            neighbours.map(|pair| (pair[1].1, pair[1].1.saturating_sub(pair[0].1).saturating_sub(period)));
        Self {
            execution_ns: of(&execution),
            cpu_ns: of(&|row| row.cpu_ns),
            response_ns: of(&|row| row.sample.value_ns),
            off_cpu_ns: of(&|row| execution(row).saturating_sub(row.cpu_ns)),
            wake_up_off_ns: slots(&off.collect::<Vec<_>>()),
            difference_ns: slots(&differences.collect::<Vec<_>>()),
        }
    }
}

//! The view on a terminal: every second a shot of its source, and the keys of its user meanwhile.

use super::counters;
use super::draw::{self, Size};
use super::drift::Drift;
use super::family;
use super::shot::{Facts, Seen, Shot};
use super::state::{Action, Key, State};
use super::terminal::{Input, Keyboard, Screen};
use machine::Root;
use model::Cpus;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::clock::{self, ClockId};
use sys::signals::EndSignals;

/// A refresh.
const SECOND: Duration = Duration::from_secs(1);
/// Between two looks whether the isolation still holds.
const DRIFT_INTERVAL: Duration = Duration::from_secs(10);
/// Pages are taken in, and signals looked for, so often.
const STEP: Duration = Duration::from_millis(200);
/// A second that lasted so long is late.
const LATE: Duration = Duration::from_millis(1500);
/// What the marks of the view mean, where nobody can ask for help by a key.
const LEGEND: [&str; 2] = [
    "! longest  * sorted by  +N: N more tasks of that name  event: no thread is followed (--comm)",
    "HOW SURE the source is: stillcore explain exact; against tasks: stillcore explain user-tasks",
];
/// Lines of a view without a terminal.
const ROWS: u16 = 50;
/// What a tick of /proc/stat is, ms (USER_HZ).
const TICK_MS: u64 = 10;

/// Where the seconds come from.
pub(crate) trait Source {
    /// Takes in what has come; called some times a second.
    fn feed(&mut self) -> anyhow::Result<()>;
    /// A second has ended.
    fn second(&mut self) -> anyhow::Result<Seen>;
    /// Forgets maxima and the worst events.
    fn reset(&mut self);
    /// Follows the threads of this name; of none, where it is empty.
    fn follow(&mut self, comm: &str);
}

/// All that is behind the screen.
pub(crate) struct View {
    cpus: Cpus,
    state: State,
    drift: Drift,
    steal: BTreeMap<u32, u64>,
    cpu_ns: i64,
    last: Instant,
}

impl View {
    /// Of these CPUs; `dir`: of the session that may have isolated them, where not the usual one.
    pub(crate) fn new(cpus: &Cpus, facts: Facts, dir: Option<PathBuf>) -> anyhow::Result<Self> {
        Ok(Self {
            cpus: cpus.clone(),
            state: State::new(facts),
            drift: Drift::begin(dir, DRIFT_INTERVAL)?,
            steal: counters::steal(&Root::live(), cpus),
            cpu_ns: clock::process_cpu_ns(),
            last: Instant::now(),
        })
    }

    /// Shows until the user quits, the terminal has gone, or it is over.
    pub(crate) fn show(
        &mut self,
        source: &mut dyn Source,
        over: &dyn Fn() -> bool,
        signals: &EndSignals,
    ) -> anyhow::Result<()> {
        let mut screen = Screen::enter()?;
        let mut keyboard = Keyboard::default();
        let mut next = Instant::now() + SECOND;
        loop {
            let state = &self.state;
            screen.draw(|columns, rows| draw::draw(state, Size { columns, rows }))?;
            loop {
                if over() {
                    return Ok(());
                }
                source.feed()?;
                let now = Instant::now();
                if now >= next {
                    self.second(source)?;
                    next = (next + SECOND).max(now);
                    break;
                }
                match keyboard.input(signals, STEP.min(next - now))? {
                    Input::Nothing => {}
                    Input::Gone => return Ok(()),
                    Input::Redraw => break,
                    Input::Key(key) => {
                        if self.key(key, source) {
                            return Ok(());
                        }
                        break;
                    }
                }
            }
        }
    }

    /// Looks on without a terminal until it is over; the view at the end, over the last minute, as
    /// lines of at most so many columns.
    pub(crate) fn watch(
        &mut self,
        source: &mut dyn Source,
        over: &dyn Fn() -> bool,
        signals: &EndSignals,
        columns: u16,
    ) -> anyhow::Result<Vec<String>> {
        let mut next = Instant::now() + SECOND;
        while !over() {
            source.feed()?;
            let now = Instant::now();
            if now >= next {
                self.second(source)?;
                next = (next + SECOND).max(now);
            }
            signals.wait_for(STEP)?;
        }
        self.second(source)?;
        self.state.by_minute = true;
        self.state.facts.keys = false;
        let mut lines = draw::draw(&self.state, Size { columns, rows: ROWS });
        // The keys.
        lines.pop();
        let mut lines: Vec<String> =
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.extend(LEGEND.map(str::to_owned));
        Ok(lines)
    }

    /// Whether that was to quit.
    fn key(&mut self, key: Key, source: &mut dyn Source) -> bool {
        match self.state.key(key) {
            Action::Quit => return true,
            Action::Reset => source.reset(),
            Action::Follow(comm) => source.follow(&comm),
            Action::Nothing => {}
        }
        false
    }

    fn second(&mut self, source: &mut dyn Source) -> anyhow::Result<()> {
        let passed = self.last.elapsed();
        self.last = Instant::now();
        let root = Root::live();
        let mut seen = source.second()?;
        seen.view.rows = family::together(std::mem::take(&mut seen.view.rows));
        // A task that was there before recording began, and has run alone since.
        if seen.view.cpus.iter().any(|cpu| cpu.running.is_none()) {
            let running = counters::running(&root, &self.cpus);
            for cpu in seen.view.cpus.iter_mut().filter(|cpu| cpu.running.is_none()) {
                cpu.running = running.get(&cpu.cpu).cloned();
            }
        }
        let steal = counters::steal(&root, &self.cpus);
        let since = |(cpu, ticks): (u32, u64)| {
            (cpu, ticks.saturating_sub(self.steal.get(&cpu).copied().unwrap_or(ticks)) * TICK_MS)
        };
        let cpu_ns = clock::process_cpu_ns();
        let own_ns = cpu_ns - std::mem::replace(&mut self.cpu_ns, cpu_ns);
        let shot = Shot {
            seen,
            wall_ns: ClockId::Realtime.now_ns() - clock::now_ns(),
            own_percent: own_ns as f64 * 100.0 / passed.as_nanos().max(1) as f64,
            late: passed > LATE,
            steal_ms: steal.into_iter().map(since).collect(),
            drifted: self.drift.seen(),
        };
        self.state.push(shot);
        Ok(())
    }
}

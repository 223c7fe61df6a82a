//! What the user has chosen to see, and what keys change of it: no terminal, no machine.

use super::pen::harmless;
use super::shot::{Facts, Shot};
use attribution::live::view::RowView;
use model::EventClass;
use std::collections::VecDeque;
use std::sync::Arc;

/// Seconds that one can step back through while frozen.
const HISTORY: usize = 60;
/// The longest filter or name that can be typed.
const MOST_TYPED: usize = 60;

/// A key, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    CtrlC,
}

/// What a key asks of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    Quit,
    /// Forget maxima and the worst events.
    Reset,
    /// Follow threads of this name; none where it is empty.
    Follow(String),
}

/// By what rows are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    #[default]
    Time,
    Rate,
    Longest,
    Cpu,
    Class,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Time => Self::Rate,
            Self::Rate => Self::Longest,
            Self::Longest => Self::Cpu,
            Self::Cpu => Self::Class,
            Self::Class => Self::Time,
        }
    }
}

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    Main,
    Help,
    /// One of the worst, taken apart.
    Worst(usize),
    /// The selected row.
    Row,
    Drift,
}

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    Filter,
    Thread,
}

/// The state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) facts: Facts,
    history: VecDeque<Arc<Shot>>,
    /// The shot shown while frozen, and rows in the order they had.
    frozen: Option<usize>,
    pub(crate) sort: Sort,
    pub(crate) reverse: bool,
    pub(crate) filter: String,
    pub(crate) typing: Option<(Typing, String)>,
    /// Whether rates are those of the last minute.
    pub(crate) by_minute: bool,
    pub(crate) only_cpu: Option<u32>,
    pub(crate) pane: Pane,
    pub(crate) selected: Option<usize>,
}

impl State {
    pub(crate) fn new(facts: Facts) -> Self {
        Self { facts, ..Self::default() }
    }

    /// A second has ended.
    pub(crate) fn push(&mut self, shot: Shot) {
        if self.history.len() == HISTORY {
            if let Some(at) = &mut self.frozen {
                // What is looked at stays, however long.
                if *at == 0 {
                    self.history.remove(1);
                    self.history.push_back(Arc::new(shot));
                    return;
                }
                *at -= 1;
            }
            self.history.pop_front();
        }
        self.history.push_back(Arc::new(shot));
    }

    /// What is shown; `None` before the first second has ended.
    pub(crate) fn shot(&self) -> Option<Arc<Shot>> {
        let at = self.frozen.unwrap_or(self.history.len().saturating_sub(1));
        self.history.get(at).cloned()
    }

    /// Seconds back from now, while frozen.
    pub(crate) fn frozen_for(&self) -> Option<usize> {
        self.frozen.map(|at| self.history.len().saturating_sub(at + 1))
    }

    /// The rows in order.
    pub(crate) fn rows<'s>(&self, shot: &'s Shot) -> Vec<&'s RowView> {
        let words = self.filter.to_lowercase();
        let wanted = |row: &&RowView| {
            let here = self.only_cpu.is_none_or(|cpu| cpu == row.cpu);
            here && (words.is_empty() || harmless(&text_of(row)).to_lowercase().contains(&words))
        };
        let mut rows: Vec<_> = shot.seen.view.rows.iter().filter(wanted).collect();
        let rate = |row: &RowView| if self.by_minute { row.minute_count } else { row.count };
        let time = |row: &RowView| if self.by_minute { row.minute_ns } else { row.ns };
        // Ties in an order of their own, so that rows keep their places.
        rows.sort_by(|a, b| {
            let most = match self.sort {
                Sort::Time => {
                    let of =
                        |row| (time(row), row.minute_ns, row.total_ns, row.minute_count, row.total_count);
                    of(b).cmp(&of(a))
                }
                Sort::Rate => (rate(b), b.minute_count).cmp(&(rate(a), a.minute_count)),
                Sort::Longest => b.max_ns.cmp(&a.max_ns),
                Sort::Cpu => a.cpu.cmp(&b.cpu),
                Sort::Class => a.class.cmp(&b.class),
            };
            let most = if self.reverse { most.reverse() } else { most };
            most.then_with(|| (a.cpu, a.class, &a.label, a.pid).cmp(&(b.cpu, b.class, &b.label, b.pid)))
        });
        rows
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, key: Key) -> Action {
        if key == Key::CtrlC {
            return Action::Quit;
        }
        if let Some(typing) = self.typing.take() {
            return self.typed(typing, key);
        }
        match (self.pane, key) {
            (Pane::Main, Key::Char('q')) => return Action::Quit,
            (Pane::Main, Key::Esc) => (self.selected, self.frozen) = (None, None),
            (_, Key::Char('q') | Key::Esc) => self.pane = Pane::Main,
            (Pane::Worst(at), Key::Left | Key::Up) => self.pane = Pane::Worst(at.saturating_sub(1)),
            (Pane::Worst(at), Key::Right | Key::Down) => {
                let last = self.shot().map_or(0, |shot| shot.seen.view.worst.len().saturating_sub(1));
                self.pane = Pane::Worst((at + 1).min(last));
            }
            (_, Key::Char('f' | ' ')) => self.freeze(),
            (_, Key::Left) => self.step(-1),
            (_, Key::Right) => self.step(1),
            (_, Key::Up | Key::Char('k')) => self.select(-1),
            (_, Key::Down | Key::Char('j')) => self.select(1),
            (_, Key::Enter) => {
                self.pane = if self.selected.is_some() { Pane::Row } else { Pane::Worst(0) };
            }
            (_, Key::Char('?')) => self.pane = Pane::Help,
            (_, Key::Char('x')) => self.pane = Pane::Drift,
            (_, Key::Char('s')) => self.sort = self.sort.next(),
            (_, Key::Char('S')) => self.reverse = !self.reverse,
            (_, Key::Char('/')) => self.typing = Some((Typing::Filter, self.filter.clone())),
            (_, Key::Char('t')) => self.typing = Some((Typing::Thread, String::new())),
            (_, Key::Char('c')) => self.next_cpu(),
            (_, Key::Char('+')) => self.by_minute = true,
            (_, Key::Char('-')) => self.by_minute = false,
            (_, Key::Char('r')) => return Action::Reset,
            _ => {}
        }
        Action::Nothing
    }

    fn typed(&mut self, (what, mut text): (Typing, String), key: Key) -> Action {
        match key {
            Key::Enter => {
                return match what {
                    Typing::Filter => {
                        (self.filter, self.selected) = (text, None);
                        Action::Nothing
                    }
                    Typing::Thread => Action::Follow(text),
                };
            }
            Key::Esc => return Action::Nothing,
            Key::Backspace => _ = text.pop(),
            Key::Char(c) if text.len() < MOST_TYPED && !c.is_control() => text.push(c),
            _ => {}
        }
        self.typing = Some((what, text));
        Action::Nothing
    }

    fn freeze(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => self.history.len().checked_sub(1),
        };
    }

    /// Steps through the seconds that have passed; freezes.
    fn step(&mut self, by: isize) {
        let Some(last) = self.history.len().checked_sub(1) else { return };
        let at = self.frozen.unwrap_or(last).saturating_add_signed(by).min(last);
        self.frozen = Some(at);
    }

    fn select(&mut self, by: isize) {
        let Some(shot) = self.shot() else { return };
        let last = self.rows(&shot).len().checked_sub(1);
        self.selected = last.map(|last| match self.selected {
            None => 0,
            Some(at) => at.saturating_add_signed(by).min(last),
        });
    }

    fn next_cpu(&mut self) {
        let Some(shot) = self.shot() else { return };
        let cpus: Vec<u32> = shot.seen.view.cpus.iter().map(|cpu| cpu.cpu).collect();
        self.only_cpu = match self.only_cpu {
            None => cpus.first().copied(),
            Some(now) => cpus.into_iter().find(|cpu| *cpu > now),
        };
        self.selected = None;
    }
}

/// What a row is about, in words: as the kernel names it, so not yet harmless.
pub(crate) fn text_of(row: &RowView) -> String {
    let pid = row.pid.filter(|pid| *pid > 0).map(|pid| format!("[{pid}]")).unwrap_or_default();
    let label = format!("{}{pid}", row.label);
    let Some(source) = &row.source else { return label };
    let sent = matches!(
        row.class,
        EventClass::IpiResched | EventClass::IpiCall | EventClass::IpiIrqwork | EventClass::Tlb
    );
    let site = source.site.as_deref().unwrap_or_default();
    match (sent, row.class) {
        // Who sent it says more than the handler's name, which is that of the class.
        (true, _) => format!("{} {site}", source.name()).trim_end().to_owned(),
        (false, EventClass::Irq) => label,
        (false, _) => format!("{label} <- {}", source.name()),
    }
}

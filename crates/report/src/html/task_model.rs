//! The page of a task model: the verdict, three numbers and the jobs around the one that came
//! nearest to its deadline; below, each response beside its bound, chains, what if, and folded what
//! all numbers are made of.
//!
//! Long because: it is all sections of one page, each a function of a few lines.

use analysis::task_model::chain::ChainTimes;
use analysis::task_model::check::Checked;
use analysis::task_model::choose::Confidence;
use analysis::task_model::observe::{Observed, Worst};
use analysis::task_model::shape::{TaskModel, ThreadModel};
use analysis::task_model::verdict::{Bound, Guarantee};
use attribution::jobs::stretch::{State, Stretch};
use minijinja::{Environment, Value, context};
use std::collections::BTreeMap;

use super::filters::typographic;
use super::front::Front;
use super::plot::rooms;
use super::{environment, render, value};
use crate::svg::{Gantt, GanttBar, GanttLane, GanttLink, GanttMark, Room, UsedRow, gantt, micro, used};
use crate::task_model::{kind, named, of_earlier, of_guarantee, of_refuted_chain, percent, sentence};
use crate::{Card, Error, Opening, format};

/// Lanes of a chart; the jobs that are drawn of one.
const LANES: usize = 12;
const JOBS: usize = 400;

/// What the page is of.
#[derive(Debug, Clone, Copy)]
pub struct TaskModelPage<'a> {
    /// The run or trace, as the user typed it.
    pub source: &'a str,
    /// The model.
    pub model: &'a TaskModel,
    /// `None` where no thread can be analysed.
    pub guarantee: Option<&'a Guarantee>,
    /// Jobs held against bounds.
    pub checked: Option<&'a Checked>,
    /// The model whose bounds these are, where it is not this one.
    pub earlier: Option<&'a str>,
    /// What was seen around the job nearest to its deadline, and of chains.
    pub observed: &'a Observed,
    /// The same program with something changed, side by side.
    pub compared: &'a [Compared<'a>],
}

/// Two guarantees side by side.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// In words.
    pub title: &'a str,
    /// What is changed, as `--what-if` takes it.
    pub changes: &'a [String],
    /// Before and after.
    pub now: &'a Guarantee,
    /// After.
    pub then: &'a Guarantee,
    /// What was assumed, a sentence each.
    pub assumed: &'a [String],
}

/// A section of the page.
pub(super) struct Part {
    /// Anchor, and name of the partial.
    id: &'static str,
    title: &'static str,
    template: &'static str,
    /// Whether it is open at first.
    is_open: bool,
    values: fn(&TaskModelPage<'_>) -> Option<Value>,
}

macro_rules! part {
    ($id:literal, $title:literal, $open:literal, $values:path) => {
        Part {
            id: $id,
            title: $title,
            template: include_str!(concat!("../../templates/", $id, ".html")),
            is_open: $open,
            values: $values,
        }
    };
}

const PARTS: [Part; 7] = [
    part!("model-responses", "Responses and bounds", true, responses),
    part!("model-chains", "Chains", true, chains),
    part!("model-compared", "What if", true, compared),
    part!("model-refuted", "Jobs that took longer than their bound", true, refuted),
    part!("model-threads", "What the model is made of", false, threads),
    part!("model-interference", "What else competes for the CPUs", false, interference),
    part!("model-methods", "What holds, and under which assumptions", false, methods),
];

/// The partials, to be added to the environment.
pub(super) fn partials() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTS.iter().map(|part| (part.id, part.template))
}

/// The whole page.
pub fn task_model_page(page: &TaskModelPage<'_>) -> Result<String, Error> {
    let environment = environment()?;
    let model = page.model;
    let values = context! {
        source => page.source,
        span_ns => model.to_ns.abs_diff(model.from_ns),
        front => front(&environment, page)?,
        sections => sections(&environment, page)?,
    };
    render(&environment, "task_model", values)
}

/// The opening.
pub(super) fn front(environment: &Environment, page: &TaskModelPage<'_>) -> Result<Value, Error> {
    let refuted_chain = of_refuted_chain(&page.observed.chains);
    let refuted = page.checked.is_some_and(|checked| checked.refuted > 0) || refuted_chain.is_some();
    let (word, tone) = match (refuted, page.guarantee.and_then(|one| one.schedulable)) {
        (true, _) => ("Refuted", "bad"),
        (false, Some(true)) => ("Schedulable", "good"),
        (false, Some(false)) => ("Not schedulable", "bad"),
        (false, None) => ("Not known", "plain"),
    };
    let verdict = sentence(page.model, page.guarantee, page.checked.filter(|_| page.earlier.is_none()));
    let (said, lines) = match (page.earlier, page.checked) {
        (Some(name), Some(checked)) => (of_earlier(name, checked), vec![verdict]),
        _ => (verdict, Vec::new()),
    };
    let (said, lines) = match refuted_chain {
        Some(chain) => (chain, std::iter::once(said).chain(lines).collect()),
        None => (said, lines),
    };
    let front = Front {
        word: word.to_owned(),
        tone,
        opening: Opening { sentence: said, cause: None, cards: cards(page) },
        lines,
        warnings: page.model.statements.iter().skip(1).cloned().collect(),
        plot: page.observed.worst.as_ref().map_or(Value::UNDEFINED, |worst| around(page, worst)),
        next: None,
    };
    let text = render(environment, "front", context! { x => front.values() })?;
    Ok(Value::from_safe_string(text))
}

/// What follows the opening: `id`, `title`, `gist`, `body`, `open`.
pub(super) fn sections(environment: &Environment, page: &TaskModelPage<'_>) -> Result<Vec<Value>, Error> {
    let mut sections = Vec::new();
    for part in &PARTS {
        let Some(x) = (part.values)(page) else { continue };
        let body = render(environment, part.id, context! { x => x })?;
        sections.push(context! {
            id => part.id, title => part.title, open => part.is_open,
            body => Value::from_safe_string(body),
        });
    }
    Ok(sections)
}

fn time(ns: u64) -> String {
    micro(&format::ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

fn name(thread: &ThreadModel) -> String {
    format!("{}[{}]", thread.comm, thread.pid)
}

fn cards(page: &TaskModelPage<'_>) -> Vec<Card> {
    let mut cards = Vec::new();
    if let Some(guarantee) = page.guarantee {
        let margin =
            format!("beside the {} % added to everything observed", guarantee.assumed.margin_ppm / 10_000);
        cards.push(match (guarantee.schedulable, guarantee.spare_ppm) {
            (Some(true), Some(ppm)) => Card::of_one("All costs can still grow by", percent(ppm), margin),
            (Some(true), None) => {
                Card::of_one("All costs can still grow by", "more than a hundredfold", margin)
            }
            _ => {
                let late = guarantee.bounds.iter().filter(|one| one.in_time() == Some(false)).count();
                let with = guarantee.bounds.iter().filter(|one| one.deadline_ns.is_some()).count();
                let of = format!("of {} with a deadline", format::plural(with as u64, "thread"));
                Card::of_one("Threads that may be late", late.to_string(), of)
            }
        });
    }
    if let Some(worst) = &page.observed.worst {
        let of = match (worst.deadline_ns, worst.bound_ns) {
            (Some(ns), _) => format!("of its deadline, {}", time(ns)),
            (None, Some(ns)) => format!("of its bound, {}", time(ns)),
            (None, None) => String::new(),
        };
        let what = format!("Nearest to its {}: {}", held_against(worst), worst.comm);
        cards.push(Card::of_one(what, time(worst.job.response_ns), of));
    }
    if let Some(checked) = page.checked {
        let of = format!("of {} jobs", format::count(checked.jobs()));
        cards.push(Card::of_one("Jobs longer than their bound", format::count(checked.refuted), of));
    }
    cards
}

/// The tasks around a job. The axis counts from its release.
fn around(page: &TaskModelPage<'_>, worst: &Worst) -> Value {
    let job = &worst.job;
    let mut chart = drawn(page, &worst.stretch, job.release_ns, |_| true);
    chart.marked = chart.place(job.tid).map(|lane| (lane, [0.0, job.response_ns as f64]));
    let response = time(job.response_ns);
    chart.marks.push(mark(job.response_ns, format!("done after {response}"), ""));
    chart.marks.extend(worst.deadline_ns.map(|ns| mark(ns, format!("deadline {}", time(ns)), "bad")));
    chart.marks.extend(worst.bound_ns.map(|ns| mark(ns, format!("bound {}", time(ns)), "warn")));
    let far = [("deadline", worst.deadline_ns), ("bound", worst.bound_ns)];
    let far: Vec<String> = far
        .into_iter()
        .filter_map(|(what, ns)| Some((what, ns?)))
        .filter(|(_, ns)| *ns as f64 > chart.window_ns[1])
        .map(|(what, ns)| format!(" Its {what}, {}, lies beyond the right edge.", time(ns)))
        .collect();
    let caption = format!(
        "The job of {} that came nearest to its {}, and what all tasks did meanwhile: arrows up are \
         releases, arrows down deadlines.{}{}",
        worst.comm,
        held_against(worst),
        far.concat(),
        left_out(&worst.stretch)
    );
    chart.plot("og", &format!("Around the job nearest to its {}", held_against(worst)), caption)
}

fn held_against(worst: &Worst) -> &'static str {
    if worst.deadline_ns.is_some() { "deadline" } else { "bound" }
}

fn left_out(stretch: &Stretch) -> String {
    if stretch.left_out == 0 {
        return String::new();
    }
    format!(" {} pieces at its end are not drawn.", format::count(stretch.left_out))
}

fn mark(at_ns: u64, name: String, class: &'static str) -> GanttMark {
    GanttMark { at_ns: at_ns as f64, name, class }
}

/// A chart, and whose its lanes are.
struct Drawn {
    chart: Gantt,
    tids: Vec<i32>,
    states: Vec<State>,
    others: bool,
}

impl std::ops::Deref for Drawn {
    type Target = Gantt;
    fn deref(&self) -> &Gantt {
        &self.chart
    }
}

impl std::ops::DerefMut for Drawn {
    fn deref_mut(&mut self) -> &mut Gantt {
        &mut self.chart
    }
}

impl Drawn {
    fn place(&self, tid: i32) -> Option<usize> {
        self.tids.iter().position(|one| *one == tid)
    }

    fn plot(&self, id: &str, title: &str, caption: String) -> Value {
        let draw = |room| {
            let id = if room == Room::Desk { id.to_owned() } else { format!("{id}h") };
            gantt(&id, title, &self.chart, room)
        };
        let plot = rooms(draw, caption);
        if plot.is_undefined() {
            return plot;
        }
        let mut key: Vec<Value> = STATES
            .iter()
            .filter(|(state, ..)| self.states.contains(state))
            .map(|(_, style, label)| context! { class => format!("p{style}"), label => *label })
            .collect();
        if self.others {
            key.push(context! { class => format!("p{OTHERS}"), label => "other threads" });
        }
        let part = |name: &str| plot.get_attr(name).unwrap_or(Value::UNDEFINED);
        context! { desk => part("desk"), hand => part("hand"), caption => part("caption"), key => key }
    }
}

/// How each state is drawn, and what it is called.
const STATES: [(State, usize, &str); 4] = [
    (State::Executes, 0, "executes"),
    (State::Dispatch, 4, "woken, not yet on the CPU"),
    (State::Preempted, 8, "preempted"),
    (State::Suspended, 6, "asleep within a job"),
];
/// The style of threads that are no tasks.
const OTHERS: usize = 7;

/// The stretch as a chart; times since `zero_ns`.
fn drawn(
    page: &TaskModelPage<'_>,
    stretch: &Stretch,
    zero_ns: i64,
    wanted: impl Fn(&ThreadModel) -> bool,
) -> Drawn {
    let since = |ns: i64| ns.saturating_sub(zero_ns) as f64;
    let active = |thread: &&ThreadModel| {
        let ran = stretch.pieces.iter().any(|piece| piece.tid == thread.pid);
        thread.is_task() && ran && wanted(thread)
    };
    let threads: Vec<&ThreadModel> = page.model.threads.iter().filter(active).take(LANES).collect();
    let bounds = page.guarantee.map_or(&[][..], |guarantee| &guarantee.bounds);
    let deadlines: BTreeMap<i32, u64> =
        bounds.iter().filter_map(|bound| Some((bound.pid, bound.deadline_ns?))).collect();
    let bars = |tid: i32, cpu: Option<u32>| -> Vec<GanttBar> {
        let ours = |piece: &&attribution::jobs::stretch::Piece| {
            piece.tid == tid && cpu.is_none_or(|cpu| piece.cpu == Some(cpu))
        };
        let style = |state| STATES.iter().find(|one| one.0 == state).map_or(OTHERS, |one| one.1);
        stretch
            .pieces
            .iter()
            .filter(ours)
            .map(|piece| GanttBar {
                from_ns: since(piece.from_ns),
                to_ns: since(piece.to_ns),
                style: if tid == 0 { OTHERS } else { style(piece.state) },
                executes: piece.state == State::Executes,
            })
            .collect()
    };
    let mut lanes: Vec<GanttLane> = threads
        .iter()
        .map(|thread| {
            let jobs = stretch.jobs.iter().filter(|job| job.tid == thread.pid).take(JOBS);
            let releases: Vec<i64> = jobs.map(|job| job.release_ns).collect();
            let deadline = deadlines.get(&thread.pid);
            let priority = thread.realtime().map(|one| format!(", priority {one}")).unwrap_or_default();
            GanttLane {
                name: format!("{}, CPU {}{priority}", thread.comm, thread.cpus),
                bars: bars(thread.pid, None),
                deadlines: deadline
                    .map(|ns| releases.iter().map(|at| since(at.saturating_add_unsigned(*ns))).collect())
                    .unwrap_or_default(),
                releases: releases.into_iter().map(since).collect(),
            }
        })
        .collect();
    let cpus: model::Cpus = threads.iter().flat_map(|thread| thread.cpus.iter()).collect();
    let others: Vec<GanttLane> = cpus
        .iter()
        .map(|cpu| GanttLane {
            name: format!("other threads, CPU {cpu}"),
            bars: bars(0, Some(cpu)),
            releases: Vec::new(),
            deadlines: Vec::new(),
        })
        .filter(|lane| !lane.bars.is_empty())
        .collect();
    let has_others = !others.is_empty();
    lanes.extend(others);
    let tids: Vec<i32> = threads.iter().map(|thread| thread.pid).collect();
    let states =
        stretch.pieces.iter().filter(|piece| tids.contains(&piece.tid)).map(|piece| piece.state).collect();
    Drawn {
        chart: Gantt {
            window_ns: [since(stretch.from_ns), since(stretch.to_ns)],
            since: "time since the release of the marked job".to_owned(),
            lanes,
            marked: None,
            marks: Vec::new(),
            links: Vec::new(),
        },
        tids,
        states,
        others: has_others,
    }
}

fn responses(page: &TaskModelPage<'_>) -> Option<Value> {
    let guarantee = page.guarantee?;
    let share = |bound: &Bound, ns: u64| ns as f64 / bound.deadline_ns.unwrap_or(1).max(1) as f64;
    let rows: Vec<UsedRow> = guarantee
        .bounds
        .iter()
        .filter(|bound| bound.deadline_ns.is_some())
        .map(|bound| UsedRow {
            label: format!("{}[{}]", bound.comm, bound.pid),
            words: format!(
                "observed {}, bound {}, deadline {}",
                time(bound.observed_ns),
                bound.bound_ns.map_or_else(|| "none".to_owned(), time),
                time(bound.deadline_ns.unwrap_or(0))
            ),
            class: if bound.in_time() == Some(false) { "bad" } else { "" },
            bars: vec![
                ("k0", share(bound, bound.observed_ns)),
                ("k1", bound.bound_ns.map_or(f64::INFINITY, |ns| share(bound, ns))),
            ],
        })
        .collect();
    let key = [
        context! { class => "k0", label => "observed maximum" },
        context! { class => "k1", label => "bound" },
    ];
    Some(context! {
        plot => plotted("ru", "Responses, bounds and deadlines", &rows),
        key => key,
        rows => guarantee.bounds.iter().map(bound_row).collect::<Vec<_>>(),
        margin => guarantee.assumed.margin_ppm / 10_000,
    })
}

fn plotted(id: &str, title: &str, rows: &[UsedRow]) -> Value {
    let draw = |room| {
        let id = if room == Room::Desk { id.to_owned() } else { format!("{id}h") };
        used(&id, title, rows, room)
    };
    rooms(draw, String::new())
}

fn bound_row(bound: &Bound) -> Value {
    context! {
        name => named(&bound.comm, bound.pid),
        cpu => bound.cpu,
        observed_ns => bound.observed_ns,
        bound_ns => bound.bound_ns,
        deadline_ns => bound.deadline_ns,
        is_assumed => bound.is_assumed,
        in_time => bound.in_time(),
    }
}

fn chains(page: &TaskModelPage<'_>) -> Option<Value> {
    let all = &page.observed.chains;
    if all.is_empty() {
        return None;
    }
    let charts = all.iter().zip(&page.observed.chain_stretches).enumerate().map(|(at, (chain, stretch))| {
        let zero_ns = chain.longest.first().map_or(stretch.from_ns, |job| job.release_ns);
        let mut chart =
            drawn(page, stretch, zero_ns, |thread| chain.threads.iter().any(|(pid, _)| *pid == thread.pid));
        "time since the release of the first job".clone_into(&mut chart.since);
        // Other jobs of the chain are not its instance.
        chart.lanes.iter_mut().for_each(|lane| lane.deadlines.clear());
        let links = chain.longest.windows(2).filter_map(|pair| {
            let lanes = [chart.place(pair[0].tid)?, chart.place(pair[1].tid)?];
            Some(GanttLink { at_ns: pair[1].woken_ns.saturating_sub(zero_ns) as f64, lanes })
        });
        chart.chart.links = links.collect();
        chart.marks.push(mark(chain.longest_ns, format!("done after {}", time(chain.longest_ns)), ""));
        chart.marks.extend(chain.bound_ns.map(|ns| mark(ns, format!("bound {}", time(ns)), "warn")));
        let caption = format!("The longest of {} instances of {}.", format::count(chain.n), path(chain));
        chart.plot(&format!("ch{at}"), "A chain from end to end", caption)
    });
    let row = |chain: &ChainTimes| {
        context! {
            path => path(chain), n => chain.n, longest_ns => chain.longest_ns, bound_ns => chain.bound_ns,
            refuted => chain.refuted, unlinked => chain.unlinked,
        }
    };
    let links = page.model.chains.iter().map(|link| {
        context! {
            from => format!("{}[{}]", link.from_comm, link.from),
            to => format!("{}[{}]", link.to_comm, link.to),
            n => link.n, of => link.of,
        }
    });
    Some(context! {
        charts => charts.filter(|plot| !plot.is_undefined()).collect::<Vec<_>>(),
        rows => all.iter().map(row).collect::<Vec<_>>(),
        links => links.collect::<Vec<_>>(),
    })
}

fn path(chain: &ChainTimes) -> String {
    let names: Vec<&str> = chain.threads.iter().map(|(_, name)| name.as_str()).collect();
    names.join(" \u{2192} ")
}

fn compared(page: &TaskModelPage<'_>) -> Option<Value> {
    let all = page.compared.iter().enumerate().map(|(at, one)| {
        let pairs: Vec<(&Bound, Option<&Bound>)> = one
            .then
            .bounds
            .iter()
            .map(|then| (then, one.now.bounds.iter().find(|now| now.pid == then.pid)))
            .collect();
        let share = |bound: &Bound| {
            let of = bound.deadline_ns.unwrap_or(1).max(1) as f64;
            bound.bound_ns.map_or(f64::INFINITY, |ns| ns as f64 / of)
        };
        let text = |bound: Option<&Bound>| {
            let none = if bound.is_some() { "none" } else { "not there" };
            bound.and_then(|bound| bound.bound_ns).map_or_else(|| none.to_owned(), time)
        };
        let rows: Vec<UsedRow> = pairs
            .iter()
            .filter(|(then, _)| then.deadline_ns.is_some())
            .map(|(then, now)| UsedRow {
                label: named(&then.comm, then.pid),
                words: format!("bound {}, then {}", text(*now), text(Some(then))),
                class: if then.in_time() == Some(false) { "bad" } else { "" },
                bars: vec![("k0", now.map_or(0.0, share)), ("k2", share(then))],
            })
            .collect();
        let row = |(then, now): &(&Bound, Option<&Bound>)| {
            context! { now => now.map(bound_row), then => bound_row(then) }
        };
        let is_gone = |now: &&Bound| !one.then.bounds.iter().any(|then| then.pid == now.pid);
        let gone = one.now.bounds.iter().filter(is_gone).map(bound_row);
        context! {
            title => one.title,
            changes => value(&one.changes),
            gone => gone.collect::<Vec<_>>(),
            now => of_guarantee(one.now),
            then => of_guarantee(one.then),
            plot => plotted(&format!("wi{at}"), "Bounds before and after", &rows),
            key => [context! { class => "k0", label => "bound now" }, context! { class => "k2", label => "bound then" }],
            rows => pairs.iter().map(row).collect::<Vec<_>>(),
            assumed => value(&one.assumed),
        }
    });
    let all: Vec<Value> = all.collect();
    (!all.is_empty()).then(|| context! { all => all })
}

fn refuted(page: &TaskModelPage<'_>) -> Option<Value> {
    let checked = page.checked.filter(|checked| checked.refuted > 0)?;
    let rows = checked.refuting.iter().map(|job| {
        let else_ns = job.response_ns.saturating_sub(job.executed_ns).saturating_sub(job.suspended_ns);
        context! {
            name => format!("{}[{}]", job.comm, job.pid),
            at_ns => job.release_ns.saturating_sub(page.model.from_ns),
            response_ns => job.response_ns, bound_ns => job.bound_ns,
            executed_ns => job.executed_ns, cost_ns => job.cost_ns,
            suspended_ns => job.suspended_ns, suspension_ns => job.suspension_ns,
            else_ns => else_ns,
            contradicts => job.contradicts(),
        }
    });
    Some(context! { rows => rows.collect::<Vec<_>>(), n => checked.refuted, jobs => checked.jobs() })
}

fn threads(page: &TaskModelPage<'_>) -> Option<Value> {
    let (tasks, others): (Vec<&ThreadModel>, Vec<&ThreadModel>) = page
        .model
        .threads
        .iter()
        .filter(|one| one.is_task() || one.of_program)
        .partition(|one| one.is_task());
    let row = |thread: &&ThreadModel| {
        let release = &thread.release;
        let costs: Vec<String> = thread.cost.curve_ns.iter().map(|ns| typographic(&time(*ns))).collect();
        let shortest = |(ns, n): &(i64, u64)| format!("{n} in {}", typographic(&time(ns.unsigned_abs())));
        context! {
            name => name(thread),
            cpus => thread.cpus.to_string(),
            priority => thread.realtime(),
            kind => kind(release.kind),
            period_ns => release.period_ns, jitter_ns => release.jitter_ns,
            cost_ns => thread.cost.most_ns(), n => thread.cost.n,
            asleep_ns => thread.suspension.total_ns, suspensions => thread.suspension.most,
            dispatch_ns => thread.dispatch_ns,
            missed => release.missed, uncertain => release.uncertain,
            waits_in => thread.waits_in.as_deref(),
            is_inferred => thread.confidence == Some(Confidence::Inferred),
            costs => picked(&costs),
            arrivals => picked(&release.curve.iter().map(shortest).collect::<Vec<_>>()),
        }
    };
    let why = |thread: &&ThreadModel| context! { name => name(thread), why => thread.why.as_deref() };
    (!tasks.is_empty() || !others.is_empty()).then(|| {
        context! {
            rows => tasks.iter().map(row).collect::<Vec<_>>(),
            without => others.iter().map(why).collect::<Vec<_>>(),
        }
    })
}

/// The first few of a curve, and its last.
fn picked(all: &[String]) -> Vec<String> {
    const FIRST: usize = 6;
    let last = all.last().filter(|_| all.len() > FIRST + 1);
    let first = if last.is_some() { FIRST } else { all.len() };
    let gap = last.map(|_| "\u{2026}".to_owned());
    all.iter().take(first).cloned().chain(gap).chain(last.cloned()).collect()
}

fn interference(page: &TaskModelPage<'_>) -> Option<Value> {
    let row = |one: &analysis::task_model::shape::Interference| {
        context! {
            cpu => one.cpu, what => one.what.as_str(), n => one.demand.n,
            longest_ns => one.demand.longest_ns, burst_ns => one.demand.burst_ns, share => one.demand.rate,
        }
    };
    let rows: Vec<Value> = page.model.interference.iter().map(row).collect();
    (!rows.is_empty()).then(|| context! { rows => rows })
}

fn methods(page: &TaskModelPage<'_>) -> Option<Value> {
    let deadlines = page.guarantee.map(|one| one.assumed.deadlines_ns.clone()).unwrap_or_default();
    let first = page.guarantee.and_then(|one| one.first.as_ref());
    (page.guarantee.is_some() || !page.model.statements.is_empty()).then(|| {
        context! {
            statements => value(&page.model.statements),
            margin => page.guarantee.map(|one| one.assumed.margin_ppm / 10_000),
            deadlines => value(&deadlines),
            jitter_ns => page.guarantee.and_then(|one| one.jitter_ns),
            first => first.map(|one| context! {
                grows => one.grows.as_str(), late => one.late.as_str(), by => percent(one.by_ppm),
            }),
            unmatched => value(&page.checked.map(|one| one.unmatched.clone()).unwrap_or_default()),
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::fixture::programs::{program_page, program_page_without_bounds};
    use crate::html::assert_balanced;

    #[test]
    fn the_page_opens_with_the_verdict_the_jobs_and_their_bounds() {
        let page = program_page(false).unwrap();
        assert_balanced(&page);
        let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
        let flat = opening.replace('\u{a0}', " ");
        for phrase in [
            "<p class=\"word\">Schedulable</p>",
            "with 18 % to spare; the first to miss is poll&lt;b&gt; if it grows by 60 %",
            "1 thread under a real-time policy has no model, and is not covered.",
            "8 context switches are missing",
            "Nearest to its deadline: poll&lt;b&gt;",
            "of its deadline, 10.00 ms",
            ">done after 4.300 ms<",
            ">bound 6.200 ms<",
            ">deadline 10.00 ms<",
            "<b>0</b> <span class=\"small\">of 300 jobs</span>",
        ] {
            assert!(flat.contains(phrase), "{phrase}: {flat}");
        }
        // On a desk and in a hand.
        assert_eq!(opening.matches("<svg").count(), 2);
        assert_eq!(page.matches("<svg").count(), 2 + 2 + 2 + 2);
        let flat = page.replace('\u{a0}', " ");
        for phrase in
            ["control → filter", "--what-if filter.cost=3ms", "caches are not modelled", "run&lt;1&gt;"]
        {
            assert!(flat.contains(phrase) || flat.contains(&phrase.replace('/', "&#x2f;")), "{phrase}");
        }
        assert!(!page.contains("<script>x") && !page.contains('\u{202e}') && !page.contains("<b>poll"));
        let shown = page.split("<script").next().unwrap();
        for wrong in ["NaN", ">inf<", "\"inf"] {
            let around = shown.find(wrong).map(|at| shown.get(at.saturating_sub(60)..at + 60));
            assert_eq!(around, None, "{wrong}");
        }
    }

    #[test]
    fn a_program_without_bounds_has_a_page() {
        let page = program_page_without_bounds().unwrap();
        assert_balanced(&page);
        assert!(page.contains("no thread of the program can be modelled"));
    }

    #[test]
    fn what_refutes_the_model_comes_first_and_is_taken_apart() {
        let page = program_page(true).unwrap().replace('\u{a0}', " ");
        assert!(page.contains("<p class=\"word\">Refuted</p>"));
        assert!(page.contains("Nothing is guaranteed: 1 of 300 jobs took longer than their bound."));
        assert!(page.contains("it executed longer than the model says"));
        assert!(page.contains("id=\"model-refuted\""));
    }
}

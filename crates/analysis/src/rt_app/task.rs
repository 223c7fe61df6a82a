//! A task of a file of rt-app → one thread of a load.

use super::names::Reading;
use super::place::Place;
use super::{PRIORITY, US};
use model::load::{LoadThread, Phase, Share, Step};
use model::sample::{Policy, Reservation};
use model::{Cpus, Error};

/// Keys of a task that are no events.
const OF_TASK: [&str; 12] = [
    "instance",
    "delay",
    "loop",
    "phases",
    "policy",
    "priority",
    "cpus",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
];
/// Events begin with these; the longer first.
const EVENTS: [&str; 12] = [
    "runtime", "run", "sleep", "timer", "suspend", "resume", "unlock", "lock", "barrier", "sem_post",
    "sem_wait", "yield",
];
/// Events of rt-app that are not played.
const NOT_PLAYED: [&str; 8] = ["wait", "signal", "broad", "sync", "memrun", "mem", "iorun", "fork"];

fn key<'a>(place: &Place<'a>, wanted: &str) -> Result<Option<Place<'a>>, Error> {
    Ok(place.object()?.into_iter().find(|(key, _)| key == wanted).map(|(_, value)| value))
}

/// How many threads it stands for.
pub(super) fn instances(task: &Place<'_>) -> Result<usize, Error> {
    let number = key(task, "instance")?.map(|value| value.number(0)).transpose()?;
    Ok(number.map_or(1, |number| usize::try_from(number).unwrap_or(usize::MAX)))
}

/// Whether it waits to be resumed.
pub(super) fn suspends(task: &Place<'_>) -> Result<bool, Error> {
    let is = |place: &Place<'_>| -> Result<bool, Error> {
        Ok(place.object()?.iter().any(|(key, _)| key.starts_with("suspend")))
    };
    let phases = key(task, "phases")?.map(|phases| phases.object()).transpose()?.unwrap_or_default();
    let of_phases = phases.iter().map(|(_, phase)| is(phase)).collect::<Result<Vec<bool>, Error>>()?;
    Ok(is(task)? || of_phases.contains(&true))
}

/// The thread of one instance.
pub(super) fn read(
    reading: &mut Reading,
    name: &str,
    instance: usize,
    task: &Place<'_>,
) -> Result<LoadThread, Error> {
    let rounds = key(task, "loop")?.map(|value| rounds(&value)).transpose()?;
    let mut of = Of { reading, task: name, instance, timers: Vec::new() };
    let (phases, thread_rounds) = match key(task, "phases")? {
        None => {
            let steps = of.steps(task, &OF_TASK)?;
            // A loop beside the events is that of the only phase, and the thread then ends.
            let once = rounds.map(|_| 1);
            (vec![Phase { rounds: rounds.unwrap_or(Some(1)).unwrap_or(u64::MAX), steps }], once)
        }
        Some(phases) => {
            if let Some((_, event)) = task.object()?.iter().find(|(key, _)| !OF_TASK.contains(&key.as_str()))
            {
                return Err(event.refuse("it stands beside \"phases\"", "events in a phase"));
            }
            let mut all = Vec::new();
            for (_, phase) in phases.object()? {
                let rounds = key(&phase, "loop")?.map(|value| self::rounds(&value)).transpose()?;
                let steps = of.steps(&phase, &["loop"])?;
                all.push(Phase { rounds: rounds.unwrap_or(Some(1)).unwrap_or(u64::MAX), steps });
            }
            (all, rounds.flatten())
        }
    };
    if phases.is_empty() {
        return Err(task.refuse("it has no phase", "events"));
    }
    let delay_ns = key(task, "delay")?.map(|value| value.time_ns()).transpose()?.unwrap_or(0);
    let several = instances(task)? > 1;
    Ok(LoadThread {
        name: if several { format!("{name}-{instance}") } else { name.to_owned() },
        policy: policy(of.reading, task)?,
        cpus: key(task, "cpus")?.map(|value| cpus(&value)).transpose()?,
        delay_ns,
        phases,
        rounds: thread_rounds,
    })
}

/// `None` for ever.
fn rounds(value: &Place<'_>) -> Result<Option<u64>, Error> {
    match value.number(-1)? {
        0 => Err(value.refuse("it is 0", "a number above 0, or -1 for ever")),
        number => Ok(u64::try_from(number).ok()),
    }
}

fn cpus(value: &Place<'_>) -> Result<Cpus, Error> {
    let number = |one: Place<'_>| -> Result<u32, Error> {
        let cpu = one.number(0)?;
        u32::try_from(cpu)
            .ok()
            .filter(|cpu| *cpu <= model::cpus::MAX_CPU)
            .ok_or_else(|| one.refuse(format!("CPU {cpu}"), format!("at most {}", model::cpus::MAX_CPU)))
    };
    let cpus: Cpus = value.list()?.into_iter().map(number).collect::<Result<_, _>>()?;
    if cpus.is_empty() { Err(value.refuse("it is empty", "a list of CPUs")) } else { Ok(cpus) }
}

fn policy(reading: &Reading, task: &Place<'_>) -> Result<Policy, Error> {
    let asked = key(task, "policy")?;
    let name = asked.as_ref().map(Place::text).transpose()?.unwrap_or(&reading.default_policy).to_owned();
    let place = asked.as_ref().unwrap_or(task);
    let priority = key(task, "priority")?;
    let number = priority.as_ref().map(|value| value.number(-20)).transpose()?;
    let of_deadline = ["dl-runtime", "dl-period", "dl-deadline", "period", "deadline"];
    if name != "SCHED_DEADLINE" {
        for wanted in of_deadline {
            if let Some(value) = key(task, wanted)? {
                return Err(value.refuse(format!("the policy is {name}"), "SCHED_DEADLINE"));
            }
        }
    }
    match name.as_str() {
        "SCHED_FIFO" | "SCHED_RR" => {
            let number = number.map_or(Some(PRIORITY), |number| u32::try_from(number).ok());
            let number = number.filter(|number| (1..=99).contains(number));
            let refused = || priority.as_ref().unwrap_or(task).refuse("a real-time policy", "1 to 99");
            Ok(Policy { name, priority: number.ok_or_else(refused)?, reservation: None })
        }
        "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE" | "SCHED_DEADLINE" if number.unwrap_or(0) != 0 => {
            let place = priority.as_ref().unwrap_or(task);
            Err(place.refuse(format!("a priority of {name}, a nice value, is not played"), "0"))
        }
        "SCHED_OTHER" | "SCHED_BATCH" | "SCHED_IDLE" => Ok(Policy { name, ..Policy::other() }),
        "SCHED_DEADLINE" => {
            let time = |names: [&str; 2]| -> Result<Option<u64>, Error> {
                let first = key(task, names[0])?;
                let value = if first.is_none() { key(task, names[1])? } else { first };
                value.map(|value| value.time_ns()).transpose()
            };
            let runtime_ns = time(["dl-runtime", "dl-runtime"])?.filter(|ns| *ns > 0);
            let runtime_ns = runtime_ns.ok_or_else(|| task.refuse("it has no budget", "\"dl-runtime\""))?;
            let period_ns = time(["dl-period", "period"])?.unwrap_or(runtime_ns);
            let deadline_ns = time(["dl-deadline", "deadline"])?.unwrap_or(period_ns);
            if runtime_ns > deadline_ns || deadline_ns > period_ns {
                let what = format!("{} of {} in {} us", runtime_ns / US, deadline_ns / US, period_ns / US);
                return Err(task.refuse(what, "dl-runtime <= dl-deadline <= dl-period"));
            }
            Ok(Policy::deadline(Reservation { runtime_ns, deadline_ns, period_ns }))
        }
        _ => Err(place.refuse(
            format!("the policy {name:?}"),
            "SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR or SCHED_DEADLINE",
        )),
    }
}

/// The thread that is being read.
struct Of<'a> {
    reading: &'a mut Reading,
    task: &'a str,
    instance: usize,
    /// Its timers by name.
    timers: Vec<String>,
}

impl Of<'_> {
    fn steps(&mut self, place: &Place<'_>, others: &[&str]) -> Result<Vec<Step>, Error> {
        let mut steps = Vec::new();
        for (key, value) in place.object()? {
            if !others.contains(&key.as_str()) {
                self.reading.count_step(&value)?;
                self.event(&key, &value, &mut steps)?;
            }
        }
        if steps.is_empty() { Err(place.refuse("it has no events", "events")) } else { Ok(steps) }
    }

    fn event(&mut self, key: &str, value: &Place<'_>, steps: &mut Vec<Step>) -> Result<(), Error> {
        if NOT_PLAYED.iter().any(|event| key.starts_with(event)) {
            return Err(
                value.refuse("events of this kind are not played", format!("one of {}", EVENTS.join(", ")))
            );
        }
        let Some(event) = EVENTS.iter().find(|event| key.starts_with(**event)) else {
            let known = format!("a key of rt-app that is played; events are {}", EVENTS.join(", "));
            return Err(value.refuse("the key is not played", known));
        };
        let share = Share::EACH;
        steps.push(match *event {
            "run" => Step::Execute(value.time_ns()?),
            "runtime" => Step::Spin(value.time_ns()?),
            "sleep" => Step::Sleep(value.time_ns()?),
            "timer" => self.timer(value)?,
            "lock" => Step::Lock(self.reading.lock(&value.name()?)),
            "unlock" => Step::Unlock(self.reading.lock(&value.name()?)),
            "barrier" => Step::Barrier(self.reading.barrier(&value.name()?)),
            "sem_post" => Step::Send { channel: self.reading.semaphore(&value.name()?), share },
            "sem_wait" => Step::Wait { channel: self.reading.semaphore(&value.name()?) },
            // The text is of no account.
            "suspend" => Step::Wait { channel: self.reading.suspends[self.task][self.instance] },
            "resume" => {
                let name = value.name()?;
                let all = self.reading.suspends.get(&name).ok_or_else(|| {
                    value.refuse(format!("no task {name:?} suspends"), "the name of a task with \"suspend\"")
                })?;
                steps.extend(all.iter().map(|channel| Step::Send { channel: *channel, share }));
                return Ok(());
            }
            _ => Step::Yield,
        });
        Ok(())
    }

    fn timer(&mut self, value: &Place<'_>) -> Result<Step, Error> {
        let (mut name, mut period_ns, mut absolute) = ("unknown".to_owned(), 0, false);
        for (key, value) in value.object()? {
            match key.as_str() {
                "ref" => name = value.name()?,
                "period" => period_ns = value.time_ns()?,
                "mode" => {
                    absolute = match value.text()? {
                        "absolute" => true,
                        "relative" => false,
                        other => {
                            return Err(value.refuse(format!("the mode {other:?}"), "relative or absolute"));
                        }
                    }
                }
                _ => return Err(value.refuse("the key is none of a timer", "ref, period, mode")),
            }
        }
        if period_ns == 0 {
            return Err(value.refuse("it has no period", "\"period\" in microseconds, above 0"));
        }
        if !name.starts_with("unique") {
            let user = format!("{} {}", self.task, self.instance);
            let first = self.reading.timers.entry(name.clone()).or_insert_with(|| user.clone());
            if *first != user {
                let expected = "a timer of one thread; a name that begins with \"unique\" gives each its own";
                return Err(value.refuse(format!("several threads share the timer {name:?}"), expected));
            }
        }
        let known = self.timers.iter().position(|one| *one == name);
        let timer = known.unwrap_or_else(|| {
            self.timers.push(name);
            self.timers.len() - 1
        });
        Ok(Step::Timer { timer, period_ns, absolute })
    }
}

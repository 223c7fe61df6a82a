//! One pass over a trace: calls by function, caller and CPU; the lists' tracepoints; for the grep
//! also what else has a matching text.

use super::grep::{Lines, Patterns};
use super::{FunctionCounts, tally};
pub(super) use crate::functions::call::Plan;
use crate::functions::call::{Call, Seen};
use attribution::Error;
use ftrace::{EventFormat, Field, FieldKind, Item, TraceFile};
use model::Cpus;
use model::functions::FunctionCatalogue;
use rustc_hash::FxHashMap;

/// Counts the function tracer's entries in some buffers ("" is the top one), on `cpus` only where
/// given. `grep`: also the lines that the replication's grep would find in the trace's text.
pub fn count(
    file: &TraceFile,
    catalogue: &FunctionCatalogue,
    buffers: &[&str],
    cpus: Option<&Cpus>,
    grep: bool,
) -> Result<FunctionCounts, Error> {
    let formats = file.formats();
    let endian = formats.endian();
    let symbols = file.symbols()?;
    let plans: FxHashMap<u16, Plan> =
        formats.iter().map(|format| (format.id, plan(catalogue, format))).collect();
    let mut lines = grep.then(|| Lines::new(Patterns::of(catalogue), file, &symbols));
    let mut seen = Seen::default();
    let mut stream = file.stream_buffers(buffers)?;
    while let Some(item) = stream.next()? {
        let event = match item {
            Item::Event(event) => event,
            Item::Lost { cpu, count, .. } => {
                if cpus.is_none_or(|cpus| cpus.contains(cpu)) {
                    seen.holes += 1;
                    seen.lost = seen.lost.saturating_add(count.unwrap_or(0));
                }
                continue;
            }
        };
        if cpus.is_some_and(|cpus| !cpus.contains(event.cpu)) {
            continue;
        }
        let by_task = lines.as_ref().map_or(0, |lines| lines.of_task(event.pid));
        match plans.get(&event.id) {
            Some(Plan::Function { ip, caller }) => {
                let at = |field: &Field| field.uint(event.data, endian).unwrap_or(0);
                let call =
                    Call { cpu: event.cpu, ip: at(ip), caller: caller.as_ref().map_or(0, at), by_task };
                *seen.calls.entry(call).or_default() += 1;
            }
            Some(plan) => {
                seen.listed(plan, event.cpu, event.data, endian);
                if let Some(lines) = &mut lines {
                    lines.other(event.id, event.data, by_task);
                }
            }
            None => {}
        }
    }
    Ok(tally::summarize(file.uname(), catalogue, &symbols, &seen, lines.as_ref()))
}

fn plan(catalogue: &FunctionCatalogue, format: &EventFormat) -> Plan {
    let name = format.full_name();
    let address = |name: &str| format.field(name).filter(|field| field.kind == FieldKind::Scalar).cloned();
    match name.as_str() {
        "ftrace:function" => {
            address("ip").map_or(Plan::Other, |ip| Plan::Function { ip, caller: address("parent_ip") })
        }
        "ftrace:funcgraph_entry" => {
            address("func").map_or(Plan::Other, |ip| Plan::Function { ip, caller: None })
        }
        _ => {
            let lists = catalogue.lists.iter().enumerate().flat_map(|(at, list)| {
                let here = list.tracepoints.iter().filter(|one| one.name == name);
                here.map(move |one| (at, one.field.as_deref().zip(one.value)))
            });
            let lists: Vec<_> = lists
                .filter_map(|(at, only)| match only {
                    None => Some((at, None)),
                    Some((field, value)) => Some((at, Some((address(field)?, value)))),
                })
                .collect();
            if lists.is_empty() { Plan::Other } else { Plan::Listed(lists) }
        }
    }
}

//! From addresses to names, from names to the catalogue: what was seen, by list, function and CPU.

use super::grep::{Lines, name};
use super::{FunctionCounts, HiddenFunction, ListCounts, SymbolCounts};
use crate::functions::call::{Call, Seen};
use ftrace::Symbols;
use model::functions::{FunctionCatalogue, FunctionList, FunctionSpec, KERNELS, stem};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One call with its names.
struct Named<'a> {
    symbol: String,
    function: Option<&'a FunctionSpec>,
    event: bool,
}

/// Counts of all functions seen.
pub(super) fn summarize(
    uname: Option<&str>,
    catalogue: &FunctionCatalogue,
    symbols: &Symbols,
    seen: &Seen,
    lines: Option<&Lines>,
) -> FunctionCounts {
    let read_as = uname.and_then(column);
    let named = |call: &Call| {
        let symbol = name(symbols, call.ip).map_or_else(|| format!("{:#x}", call.ip), Cow::into_owned);
        let function = catalogue.by_symbol(stem(&symbol));
        let caller = if call.caller == 0 { None } else { name(symbols, call.caller) };
        let caller = caller.as_deref().map_or("", stem);
        let event = function.is_some_and(|function| function.is_event(caller));
        Named { symbol, function, event }
    };
    let mut lists: Vec<ListCounts> =
        catalogue.lists.iter().map(|list| empty(catalogue, list, read_as)).collect();
    let mut listed: Vec<BTreeMap<String, SymbolCounts>> = vec![BTreeMap::new(); lists.len()];
    let mut others: BTreeMap<String, SymbolCounts> = BTreeMap::new();
    let mut calls = 0;
    for (call, n) in &seen.calls {
        calls += n;
        let Named { symbol, function, event } = named(call);
        let list = function.and_then(|function| lists.iter().position(|list| list.id == function.list));
        let events = if event { *n } else { 0 };
        if let Some(list) = list {
            let here = lists[list].per_cpu.entry(call.cpu).or_default();
            here.calls += n;
            here.events += events;
            lists[list].events_seen |= function.is_some_and(|function| function.event);
        }
        let rows = list.map_or(&mut others, |list| &mut listed[list]);
        let row = rows.entry(symbol).or_insert_with_key(|symbol| row(symbol, function));
        row.calls += n;
        row.events += events;
        *row.per_cpu.entry(call.cpu).or_default() += n;
    }
    for ((list, cpu), n) in &seen.events {
        lists[*list].per_cpu.entry(*cpu).or_default().by_tracepoint += n;
        *lists[*list].by_tracepoint.get_or_insert(0) += n;
    }
    for (list, rows) in lists.iter_mut().zip(listed) {
        list.calls = list.per_cpu.values().map(|cpu| cpu.calls).sum();
        list.events = list.per_cpu.values().map(|cpu| cpu.events).sum();
        list.symbols = most_first(rows);
    }
    let paper_grep = lines.map(|lines| {
        let each = catalogue.lists.iter().zip(&lists).map(|(spec, list)| {
            let is_event = |call: &Call| {
                let named = named(call);
                named.event && named.function.is_some_and(|function| function.list == spec.id)
            };
            let mut counts = lines.count_list(catalogue, spec, seen, &is_event);
            counts.events = list.by_tracepoint.unwrap_or(list.events);
            counts
        });
        each.collect()
    });
    FunctionCounts {
        kernel: uname.map(str::to_owned),
        read_as: read_as.map(str::to_owned),
        calls,
        lists,
        others: most_first(others),
        holes: seen.holes,
        lost: seen.lost,
        paper_grep,
    }
}

fn row(symbol: &str, function: Option<&FunctionSpec>) -> SymbolCounts {
    SymbolCounts {
        symbol: symbol.to_owned(),
        function: function.map(|function| function.id.clone()),
        why: function.map(|function| function.why.clone()),
        ..SymbolCounts::default()
    }
}

fn empty(catalogue: &FunctionCatalogue, list: &FunctionList, kernel: Option<&str>) -> ListCounts {
    let functions = catalogue.functions.iter().filter(|function| function.list == list.id);
    let hidden = functions.filter_map(|function| {
        Some(HiddenFunction { function: function.id.clone(), reason: *function.hidden.get(kernel?)? })
    });
    ListCounts {
        id: list.id.clone(),
        title: list.title.clone(),
        hidden: hidden.collect(),
        unseen: list.unseen.clone(),
        ..ListCounts::default()
    }
}

fn most_first(rows: BTreeMap<String, SymbolCounts>) -> Vec<SymbolCounts> {
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.calls));
    rows
}

/// The kernel of the catalogue that stands for the one in a uname: the newest that is not newer.
/// Used only for functions that a tracer cannot show.
fn column(uname: &str) -> Option<&'static str> {
    let version = |text: &str| {
        let mut numbers = text.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?))
    };
    let running = uname.split_whitespace().find_map(version)?;
    KERNELS.into_iter().rev().find(|kernel| version(kernel).is_some_and(|known| known <= running))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_read_as_the_newest_that_is_not_newer() {
        for (uname, kernel) in [
            ("Linux lab 6.1.0-56-amd64 x86_64", Some("6.1")),
            ("Linux 2host 6.18.44 #1", Some("6.12")),
            ("Linux x 5.15.0 y", Some("5.10")),
            ("Linux x 4.19.0", None),
            ("", None),
        ] {
            assert_eq!(column(uname), kernel, "{uname}");
        }
    }
}

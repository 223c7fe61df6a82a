//! Folded stacks: a line for each stack on which time was taken, outermost first, with that time in
//! ns. Flame graphs are drawn from them (flamegraph.pl, inferno, speedscope).
//!
//! `CPU 2;ipi.call do_sync_core;bash[812] on CPU 0;system call
//! munmap;unmap_region;flush_tlb_mm_range 1200`

use super::{Exporter, Taken, name};
use crate::Error;
use attribution::attribute::events::Attributed;
use attribution::attribute::section::SourceText;
use model::sample::Sample;
use std::collections::BTreeMap;
use std::io::Write;

/// Most distinct stacks; later ones are summed without their functions.
const MOST: usize = 65_536;

/// Sums up the events, and writes at the end.
pub struct Folded<W> {
    out: W,
    ns: BTreeMap<String, u64>,
}

impl<W: Write> Folded<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, ns: BTreeMap::new() }
    }

    fn add(&mut self, head: &str, way: &str, ns: u64) {
        let whole = format!("{head}{way}");
        let key = if self.ns.len() < MOST || self.ns.contains_key(&whole) { whole } else { head.to_owned() };
        let sum = self.ns.entry(key).or_default();
        *sum = sum.saturating_add(ns);
    }
}

/// A semicolon ends a name, and a line break a stack.
fn clean(name: &str) -> String {
    name.replace([';', '\n'], "_")
}

/// `;bash[812] on CPU 0;system call munmap;unmap_region;flush_tlb_mm_range`
fn way(source: &SourceText) -> String {
    let who = format!("{} on CPU {}", source.name(), source.cpu);
    let site = source.site.iter().filter(|_| source.frames.is_empty());
    let program = source.users.iter().rev();
    let functions = program.chain(&source.began).chain(source.frames.iter().rev()).chain(site);
    std::iter::once(&who).chain(functions).fold(String::new(), |way, name| way + ";" + &clean(name))
}

impl<W: Write> Exporter for Folded<W> {
    fn event(&mut self, event: &Attributed) -> Result<(), Error> {
        let head = format!("CPU {};{} {}", event.cpu, event.class.name(), clean(name(event)));
        let senders = event.sources.len() as u64;
        if senders == 0 {
            self.add(&head, ";source unknown", event.net_ns);
        }
        for (at, (source, _)) in event.sources.iter().enumerate() {
            let rest = if at == 0 { event.net_ns % senders } else { 0 };
            self.add(&head, &way(source), event.net_ns / senders + rest);
        }
        Ok(())
    }

    /// Samples are no stacks.
    fn sample(&mut self, _: Taken<'_>, _: &Sample) -> Result<(), Error> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        for (way, ns) in self.ns.iter().filter(|(_, ns)| **ns > 0) {
            writeln!(self.out, "{way} {ns}")?;
        }
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use attribution::attribute::Confidence;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn folded(events: &[Attributed]) -> String {
        let written = Rc::new(RefCell::new(Vec::new()));
        let mut folded = Box::new(Folded::new(Shared(Rc::clone(&written))));
        events.iter().for_each(|event| folded.event(event).unwrap());
        folded.finish().unwrap();
        String::from_utf8(written.take()).unwrap()
    }

    #[test]
    fn the_time_of_an_event_is_shared_by_its_sources_from_outside_in() {
        let mut event = testing::served(2, 100, 111);
        event.net_ns = 11;
        let source = SourceText {
            site: Some("flush_tlb_mm_range".into()),
            began: Some("system call munmap".into()),
            frames: vec!["on_each_cpu_cond_mask".into(), "flush_tlb_mm_range".into()],
            ..SourceText::new(0, "a;b", Some(7))
        };
        event.sources[0] = (source, Confidence::Exact);
        let lines = folded(&[event.clone(), event]);
        assert_eq!(
            lines,
            "CPU 2;ipi.call do_sync_core;a_b[7] on CPU 0;system call munmap;flush_tlb_mm_range;on_each_cpu_cond_mask 12\n\
             CPU 2;ipi.call do_sync_core;interrupt: TIMER on CPU 1 10\n"
        );
    }

    #[test]
    fn an_event_of_unknown_source_has_its_time_too() {
        let event = Attributed { sources: Vec::new(), net_ns: 5, ..testing::served(2, 100, 105) };
        assert_eq!(folded(&[event]), "CPU 2;ipi.call do_sync_core;source unknown 5\n");
    }
}

//! The terminal summary: what is wrong, in order of cost, the numbers behind it, and the next
//! command to type.
//!
//! Plain ASCII, so that a serial console shows it; colour only where the caller allows it.
//! Everything is also in the page and in `--json`; where a list is cut, the line says how much is
//! left out.

pub mod fit;
mod grid;
pub(crate) mod layout;
mod one_screen;
mod prose;
mod sections;
mod tables;
mod wrap;

use crate::{Document, heading};
pub use layout::Page;

/// How the summary is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Columns of the terminal; lines are wrapped at 60 to 120.
    pub width: u16,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { color: false, width: 100 }
    }
}

/// The whole summary, newline at the end.
pub fn summary(document: &Document, options: TextOptions) -> String {
    let mut page = Page::new(options);
    if heading::is_measurement(&document.run) {
        measurement(&mut page, document);
        return page.finish();
    }
    prose::head(&mut page, document);
    prose::verdicts(&mut page, document);
    prose::advice(&mut page, document);
    tables::wakeup(&mut page, document);
    tables::noise(&mut page, document);
    sections::certainty::section(&mut page, document);
    sections::tail::section(&mut page, document);
    tables::events(&mut page, document);
    sections::time::section(&mut page, document);
    prose::comparisons(&mut page, document);
    prose::guarantee(&mut page, document);
    prose::losses(&mut page, document);
    prose::observer(&mut page, document);
    prose::files(&mut page, document);
    prose::next(&mut page, document);
    page.finish()
}

/// The answer on one screen: what `assess` prints. Everything else is in [`summary`] and the page.
pub fn screen(document: &Document, options: TextOptions) -> String {
    let mut page = Page::new(options);
    one_screen::answer(&mut page, document);
    page.finish()
}

/// The order of a measurement: what it was, under which conditions, what came out.
fn measurement(page: &mut Page, document: &Document) {
    prose::head(page, document);
    prose::verdicts(page, document);
    prose::conditions(page, document);
    if !document.advice.is_empty() {
        prose::advice(page, document);
    }
    tables::wakeup(page, document);
    tables::noise(page, document);
    sections::certainty::section(page, document);
    sections::tail::section(page, document);
    // `graph run` has a table of its own.
    sections::graph::section(page, document);
    sections::all(page, document);
    if heading::verb(&document.run) == heading::TOP {
        tables::events(page, document);
    }
    prose::losses(page, document);
    prose::observer(page, document);
    prose::files(page, document);
    prose::next(page, document);
}

/// The worst wake-up and the longest gap of a measurement, as a box each. Empty where neither was
/// measured.
pub fn verdict_text(document: &Document, options: TextOptions) -> String {
    let mut page = Page::new(options);
    prose::verdicts(&mut page, document);
    page.finish().trim_start().to_owned()
}

/// The results of a measurement alone: the answer of its verb. Empty for probes whose verbs have
/// their own tables.
pub fn measured(document: &Document, options: TextOptions) -> String {
    let mut page = Page::new(options);
    sections::all(&mut page, document);
    page.finish().trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use attribution::attribute::path_section::SamplePath;
    use snapbox::{assert_data_eq, file};

    #[test]
    fn the_summary_is_what_it_was() {
        assert_data_eq!(
            summary(&fixture::document(), TextOptions::default()),
            file!["snapshots/summary.txt"].raw()
        );
    }

    #[test]
    fn the_summary_of_a_still_core_is_what_it_was() {
        let text = summary(&fixture::still(), TextOptions { color: false, width: 80 });
        assert_data_eq!(text, file!["snapshots/summary_still.txt"].raw());
    }

    #[test]
    fn without_trace_and_samples_it_says_what_is_missing() {
        let mut document = fixture::document();
        document.run.trace = None;
        document.run.complete = false;
        document.run.incomplete_reason = Some("stopped by Ctrl-C".into());
        document.analysis.events.clear();
        document.analysis.distributions.clear();
        document.analysis.time.clear();
        document.analysis.comparisons.clear();
        let document = crate::Document::conclude(
            "run",
            document.run,
            document.machine,
            document.findings,
            document.analysis,
            &fixture::catalogue(),
        );
        assert_data_eq!(
            summary(&document, TextOptions::default()),
            file!["snapshots/summary_partial.txt"].raw()
        );
    }

    #[test]
    fn what_could_not_be_seen_is_a_dash_and_never_zero() {
        let mut document = fixture::document();
        let nmi = model::EventClass::Nmi;
        for window in document.analysis.events.iter_mut().filter(|window| window.phase == "disturbed") {
            window.classes.iter_mut().filter(|row| row.class == nmi).for_each(|row| row.observable = false);
        }
        let text = summary(&document, TextOptions::default());
        let row: Vec<&str> =
            text.lines().find(|line| line.starts_with("nmi ")).unwrap().split("  ").collect();
        let cells: Vec<&str> = row.into_iter().map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells, ["nmi", "0 (<0.15)", "-", "0 (<0.15)", "-", "-"]);
        assert!(text.contains("-: not observable in that phase"), "{text}");
        assert!(!summary(&fixture::document(), TextOptions::default()).contains("-: not observable"));
    }

    #[test]
    fn a_count_that_some_windows_could_not_add_to_is_a_lower_bound() {
        let mut document = fixture::document();
        let blind = document.analysis.events.iter_mut().filter(|w| w.phase == "disturbed" && w.cpu == 2);
        for row in blind.flat_map(|window| &mut window.classes) {
            if row.class == model::EventClass::IpiCall {
                (row.observable, row.count) = (false, 0);
            }
        }
        let text = summary(&document, TextOptions::default());
        let row = text.lines().find(|line| line.starts_with("ipi.call")).unwrap();
        assert!(row.contains(">=32.00"), "{row}");
    }

    #[test]
    fn a_virtual_machine_is_named_in_the_head_and_metal_is_not() {
        let mut document = fixture::document();
        let head = |document: &crate::Document| {
            let options = TextOptions { color: false, width: 120 };
            summary(document, options).lines().next().unwrap().to_owned()
        };
        assert!(head(&document).contains("virtual machine (KVM)"));
        document.machine.machine.hypervisor = None;
        assert!(!head(&document).contains("virtual"));
    }

    #[test]
    fn where_the_loop_ran_longer_on_one_cpu_both_ends_are_shown() {
        let mut document = fixture::document();
        let noise = document.analysis.distributions.iter_mut();
        let mut noise =
            noise.filter(|d| d.probe == model::sample::ProbeKind::Noise && d.phase == "disturbed");
        noise.next().unwrap().duration_ns = 4_000_000_000;
        let text = summary(&document, TextOptions { color: false, width: 120 });
        assert!(
            text.contains("the loop ran: idle-before 10.0 s, disturbed 4.0 s to 10.0 s a CPU,"),
            "{text}"
        );
    }

    #[test]
    fn every_deadline_that_is_asked_for_has_an_answer() {
        let text = |mut document: crate::Document, deadline_ns: i64| {
            document.deadlines_ns = vec![deadline_ns];
            crate::page(&document).unwrap();
            summary(&document, TextOptions { color: false, width: 120 })
        };
        // A limit that every report counts is one as well.
        assert!(text(fixture::document(), 200_000).contains("at or above 200.0 us: "));
        let mut few = fixture::document();
        few.analysis.distributions.iter_mut().for_each(|window| window.dependence = None);
        assert!(text(few, 200_000).contains("at or above 200.0 us: "));
        assert!(text(fixture::document(), 1).contains("at or above 1 ns: not known"));
        let mut neither = fixture::document();
        neither.analysis.distributions.clear();
        let neither = text(neither, 200_000);
        assert!(neither.contains("DEADLINES\n  --deadline counts late releases"), "{neither}");
        assert!(!summary(&fixture::document(), TextOptions::default()).contains("at or above"));
    }

    #[test]
    fn a_large_sample_that_is_taken_apart_has_its_steps_and_not_the_probe_s_own_time() {
        let mut document = fixture::snapshots();
        let options = TextOptions { color: false, width: 120 };
        assert!(summary(&document, options).contains("the probe's own, or without an event"));
        let step = attribution::attribute::step::Step::IpiInFlight;
        for one in document.analysis.snapshots.iter_mut().flat_map(|section| &mut section.samples) {
            let parts = vec![fixture::part(step, one.sample.cpu, 30_000_000, false)];
            let (t_ns, value_ns) = (one.sample.t_ns, one.sample.value_ns);
            one.path = Some(SamplePath { t_ns, value_ns, parts, pieces: Vec::new(), replaced: None });
        }
        let text = summary(&document, options);
        assert!(text.contains("30.00 ms  until the IPI arrived"), "{text}");
        assert!(!text.contains("the probe's own, or"), "{text}");
        assert!(crate::page(&document).unwrap().contains("until the IPI arrived"));
    }

    #[test]
    fn what_a_killed_run_has_lost_is_not_known() {
        let mut document = fixture::document();
        (document.run.complete, document.run.incomplete_reason) = (false, None);
        let text = summary(&document, TextOptions { color: false, width: 120 });
        assert!(
            text.contains("cut off before it counted its losses") && !text.contains("samples lost 0"),
            "{text}"
        );
        let page = crate::page(&document).unwrap();
        assert!(
            page.contains("cut off before it counted its losses") && !page.contains("lost to a full ring")
        );
        let json = crate::assess_json(&document).unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["run"]["losses"], serde_json::Value::Null);
        let lost =
            crate::conditions::conditions(&document).into_iter().find(|one| one.name == "lost").unwrap();
        assert!(lost.weak && lost.text.starts_with("not known"), "{}", lost.text);
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = summary(&fixture::document(), TextOptions::default());
        let coloured = summary(&fixture::document(), TextOptions { color: true, ..TextOptions::default() });
        assert!(coloured.contains('\u{1b}'));
        let mut stripped = String::new();
        let mut parts = coloured.split("\u{1b}[");
        stripped.push_str(parts.next().unwrap_or_default());
        for part in parts {
            stripped.push_str(part.split_once('m').unwrap().1);
        }
        assert_eq!(stripped, plain);
        assert!(!plain.contains('\u{1b}'));
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let mut documents = vec![
            ("run", fixture::document()),
            ("still", fixture::still()),
            ("snapshots", fixture::snapshots()),
            ("wide", fixture::wide(&[2, 3, 4, 5, 6, 7])),
        ];
        documents.extend(fixture::MEASURED.map(|verb| (verb, fixture::measurement(verb))));
        for width in [60, 80, 120] {
            let options = TextOptions { color: false, width };
            let mut texts = vec![
                ("exposure", crate::exposure_text(&fixture::pages::exposure(), options)),
                ("matrix", crate::matrix_text(&fixture::pages::matrix(), options)),
            ];
            for (name, document) in &documents {
                texts.push((name, summary(document, options)));
                texts.push((name, screen(document, options)));
                texts.push((name, measured(document, options)));
                texts.push((name, verdict_text(document, options)));
            }
            for (name, text) in texts {
                for line in text.lines() {
                    assert!(line.chars().count() <= usize::from(width), "{name} at {width}: {line}");
                }
            }
        }
    }

    #[test]
    fn a_narrow_terminal_gets_the_same_words() {
        let document = fixture::measurement("taskset");
        let words = |width| -> Vec<String> {
            let text = measured(&document, TextOptions { color: false, width });
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.retain(|word| !word.starts_with("--"));
            words.sort();
            words.dedup();
            words
        };
        assert_eq!(words(60), words(120));
    }

    #[test]
    fn control_characters_of_the_machine_do_not_reach_the_terminal() {
        let mut document = fixture::document();
        document.machine.machine.kernel.release = "6.1\u{1b}[2J\u{7}".into();
        document.run.limits.push("line\nbreak \u{1b}]0;title\u{7}".into());
        let text = summary(&document, TextOptions::default());
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}

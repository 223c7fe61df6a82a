//! What must hold for the page: well formed, complete, self-contained, small, the same every time,
//! and safe whatever names the machine has.

use super::*;
use crate::fixture;
use analysis::distribution::Bucket;
use analysis::noise_causes::{Cause, Certainty, NoiseCauses, Thief, Totals};
use model::sample::ProbeKind;

const VOID: [&str; 3] = ["meta", "br", "!doctype"];

/// A tag of the page.
struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
    closes: bool,
    empty: bool,
}

/// The tags of a page, text and the content of `style` and `script` skipped. Panics on a tag that
/// does not end.
fn tags(page: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end =
            tag_end(rest).unwrap_or_else(|| panic!("a tag does not end: {}", &rest[..rest.len().min(80)]));
        let inside = &rest[..end];
        rest = &rest[end + 1..];
        let closes = inside.starts_with('/');
        let empty = inside.ends_with('/');
        let inside = inside.trim_matches('/');
        let (name, attributes) = inside.split_once([' ', '\n']).unwrap_or((inside, ""));
        if !closes && ["style", "script"].contains(&name) {
            rest = &rest[rest.find(&format!("</{name}")).expect("style and script end")..];
        }
        tags.push(Tag { name, attributes, closes, empty });
    }
    tags
}

/// The first `>` outside quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    text.char_indices().find_map(|(at, c)| match (c, quote) {
        ('"' | '\'', None) => {
            quote = Some(c);
            None
        }
        (c, Some(open)) if c == open => {
            quote = None;
            None
        }
        ('>', None) => Some(at),
        _ => None,
    })
}

pub(crate) fn assert_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(page) {
        if tag.closes {
            assert_eq!(open.pop(), Some(tag.name), "</{}> closes something else; open: {open:?}", tag.name);
        } else if !tag.empty && !VOID.contains(&tag.name) {
            open.push(tag.name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

fn attribute<'a>(tag: &Tag<'a>, name: &str) -> Option<&'a str> {
    let start = format!("{name}=\"");
    let at = tag.attributes.find(&start)?;
    tag.attributes[at + start.len()..].split('"').next()
}

fn pages() -> Vec<String> {
    let mut bare = fixture::document();
    bare.run.trace = None;
    bare.run.complete = false;
    bare.run.stressors.clear();
    bare.run.probes.clear();
    bare.findings.clear();
    bare.analysis.events.clear();
    bare.analysis.distributions.clear();
    bare.analysis.comparisons.clear();
    bare.analysis.overlaps.clear();
    bare.analysis.attribution.clear();
    bare.analysis.paths.clear();
    bare.analysis.time.clear();
    bare.analysis.coverage.clear();
    bare.analysis.losses.trace.clear();
    bare.machine.machine = model::Machine::default();
    let bare = Document::conclude(
        "run",
        bare.run,
        bare.machine,
        bare.findings,
        bare.analysis,
        &fixture::catalogue(),
    );
    let mut all = vec![fixture::document(), fixture::still(), fixture::wide(&[7]), bare, refused()];
    all.extend(fixture::MEASURED.map(fixture::measurement));
    all.iter().map(|d| page(d).unwrap()).collect()
}

/// A run of a user without rights: policies refused, disturbances void, a trace that does not
/// balance.
fn refused() -> Document {
    let mut document = fixture::document();
    for probe in &mut document.run.probes {
        probe.policy_effective = model::sample::Policy::other();
    }
    for stressor in &mut document.run.stressors {
        stressor.state = model::stressor::StressorState::Void;
        stressor.reason = Some("the witness saw nothing".into());
    }
    document.run.observer = model::run::ObserverCost::default();
    document.analysis.losses.reconciled = Some(false);
    document.analysis.losses.trace[0].balanced = false;
    for window in &mut document.analysis.events {
        window.cross_checks[0].agrees = false;
    }
    document.machine.machine.limits.fifo_allowed = Some(false);
    document.machine.machine.tracing.tracefs = false;
    document.findings[0].effective = Some(String::new());
    let d = document;
    Document::conclude("run", d.run, d.machine, d.findings, d.analysis, &fixture::catalogue())
}

#[test]
fn what_was_refused_is_shown() {
    let page = page(&refused()).unwrap();
    for phrase in
        ["(asked: SCHED_FIFO 95)", "the witness saw nothing", "no tracefs", "refused", "does not balance"]
    {
        assert!(page.contains(phrase), "{phrase}");
    }
    assert!(page.matches("<strong class=\"bad\">no</strong>").count() > 1);
}

#[test]
fn what_could_not_be_seen_is_a_dash_and_a_fix_shows_its_price() {
    let mut document = fixture::document();
    for window in document.analysis.events.iter_mut().filter(|w| w.phase == "disturbed" && w.cpu == 2) {
        for row in &mut window.classes {
            (row.observable, row.count, row.net_ns) = (false, 0, 0);
        }
    }
    let next = &mut document.next;
    next.caveat = Some("only interrupts requested from now on".into());
    document.advice[0].steps[0].caveat = Some("only so much".into());
    let text = page(&document).unwrap();
    let per_cpu = &text[text.find("By CPU, disturbed").unwrap()..];
    let row = &per_cpu[per_cpu.find("<th scope=\"row\">2</th>").unwrap()..];
    let row = &row[..row.find("</tr>").unwrap()];
    assert!(row.contains("<td>–</td>") && !row.contains("<td>0"), "{row}");
    for phrase in [
        "–: not observable in that phase",
        "≥: a lower bound",
        "page fault of the probe",
        "Now: <code>f</code>. Costs: what workqueue-cpumask costs.",
        "costs: what ksm-run costs.",
        "(only interrupts requested from now on)",
        "(only so much)",
        "virtual machine (KVM)",
    ] {
        assert!(text.contains(phrase), "{phrase}");
    }
    assert_balanced(&text);
}

#[test]
fn who_took_the_time_is_shown_with_how_sure_that_is() {
    let mut document = fixture::document();
    let plain = page(&document).unwrap();
    assert!(!plain.contains("Who took the time"));
    let cause = |thief, certainty, gaps| Cause {
        thief,
        certainty,
        gaps,
        total_ns: 99_000_000,
        max_ns: 50_000_000,
        range_ns: [0, 99_000_000],
    };
    document.analysis.noise_causes = vec![NoiseCauses {
        phase: "measured".into(),
        probe: ProbeKind::Noise,
        cpu: 2,
        causes: vec![
            cause(Thief::Throttling, Certainty::Counted, 2),
            cause(Thief::Unknown, Certainty::None, 1_234),
        ],
        counted: Totals::default(),
    }];
    let html = page(&document).unwrap();
    for words in ["Who took the time", "RT throttling", "a counter says so", "99.00", "1,234", "unexplained"]
    {
        assert!(html.contains(words), "{words}");
    }
    assert_eq!(
        tags(&html).iter().filter(|tag| tag.name == "table" && !tag.closes).count(),
        tags(&html).iter().filter(|tag| tag.name == "table" && tag.closes).count()
    );
}

#[test]
fn numbers_have_as_many_digits_as_they_mean() {
    let mut document = fixture::document();
    let section = document.analysis.time.iter_mut().find(|section| section.drift.is_some()).unwrap();
    let drift = section.drift.as_mut().unwrap();
    (drift.us_per_hour, drift.interval_us_per_hour) = (-17_830.123, [-25_000.0, -10_700.0]);
    drift.p_value = 0.001;
    let flat = page(&document).unwrap().replace('\u{a0}', " ");
    let drift = "drift by \u{2212}17,800 us an hour (95 %: \u{2212}25,000 to \u{2212}10,700)";
    assert!(flat.contains(&drift.replace(" us", " µs")), "the slope");
    for number in ["17830", "17,830"] {
        assert!(!flat.split("<script").next().unwrap().contains(number), "{number}");
    }
    let unseen = page(&fixture::document()).unwrap().replace('\u{a0}', " ");
    assert!(
        unseen.contains("no drift detected in the medians") && unseen.contains("|slope| &lt; 24 µs an hour")
    );
}

#[test]
fn every_page_is_well_formed() {
    for page in pages() {
        assert_balanced(&page);
    }
}

#[test]
fn the_checker_sees_what_is_not_balanced() {
    for broken in ["<p><b></p></b>", "<div>", "</div>", "<p></p></p>"] {
        assert!(std::panic::catch_unwind(|| assert_balanced(broken)).is_err(), "{broken}");
    }
    assert_balanced("<p title=\"a > b\">x<br>y</p><path d=\"M0 0\"/>");
}

#[test]
fn every_section_of_an_assessment_is_there_folded_with_its_heading() {
    for page in &pages()[..5] {
        for section in SECTIONS.iter().filter(|section| {
            !fixture::MEASURED.contains(&section.id)
                && !["summary", "snapshots", "tail", "watch"].contains(&section.id)
        }) {
            let (body, heading) =
                (format!("class=\"body\" id=\"{}\"", section.id), format!(">{}</h2>", section.title));
            assert!(page.contains(&body) && page.contains(&heading), "{}", section.id);
        }
    }
}

#[test]
fn a_measurement_has_what_it_measured_and_nothing_of_an_assessment() {
    for verb in fixture::MEASURED {
        let document = fixture::measurement(verb);
        let page = page(&document).unwrap();
        let has = |id: &str| page.contains(&format!("class=\"body\" id=\"{id}\""));
        for id in ["conditions", verb, "findings", "losses", "machine"] {
            assert!(has(id), "{verb}: {id}");
        }
        for id in ["summary", "wakeup", "noise", "events", "comparison", "guarantee", "disturbance"] {
            assert!(!has(id), "{verb}: {id}");
        }
        assert_eq!(fixture::MEASURED.iter().filter(|other| has(other)).count(), 1, "{verb}");
        assert!(page.contains("<svg") && !page.contains("Not measured"), "{verb}");
        assert!(page.contains(">Measured</p>") && page.contains(&crate::heading::title(&document.run)));
    }
}

#[test]
fn the_edges_of_a_graph_are_accounted_for_and_their_names_are_no_markup() {
    let document = fixture::measurement("graph");
    let (page, text) = (page(&document).unwrap(), crate::summary(&document, crate::TextOptions::default()));
    assert_balanced(&page);
    assert!(page.contains(
        "sent 15,004 = received 14,500 + lost 504 (4 replaced by newer ones, 500 left in a link at the end)"
    ));
    assert!(!page.contains("<b>pose</b>") && page.contains("&lt;b&gt;pose"));
    assert!(page.contains("5 more edges have smaller maxima") && page.contains("there and back"));
    for output in [&page, &text] {
        assert!(output.contains("sent 15,004 = received 14,500 + lost 504"), "{output}");
    }
    // An edge that received nothing has no values, and comes last.
    let row = text.lines().find(|line| line.starts_with("topic_7 ")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["topic_7", "node_7", "500", "500", "-", "-", "-", "-"]
    );
}

#[test]
fn samples_that_the_trace_was_kept_around_are_explained_and_the_others_counted() {
    let document = fixture::snapshots();
    let (page, text) = (page(&document).unwrap(), crate::summary(&document, crate::TextOptions::default()));
    assert!(page.contains("class=\"body\" id=\"snapshots\""));
    assert_balanced(&page);
    for output in [&page, &text] {
        let flat = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("2 samples of at least 10.00 ms: 1 in 1 snapshot kept"), "{flat}");
        assert!(flat.contains("1 where nothing was recorded"));
        assert!(flat.contains("for 2.228 ms nothing was recorded, while one snapshot was written"));
        assert!(flat.contains("46.88 ms") && flat.contains("do_sync_core 310 times"));
        // 46,880,000 ns less what ran.
        assert!(flat.contains("41.93 ms"), "{flat}");
    }
}

#[test]
fn the_heat_map_of_each_way_has_every_pair() {
    let page = page(&fixture::measurement("ipi")).unwrap();
    for method in analysis::ipi::METHODS {
        let map = &page[page.find(&format!("id=\"ipi-{method}-t\"")).unwrap()..];
        let map = &map[..map.find("</svg>").unwrap()];
        // Twelve pairs of four CPUs, and seven steps of the legend.
        assert_eq!(map.matches("<g class=\"h h").count(), 12 + 7, "{method}");
        assert_eq!(map.matches(">min ").count(), 12, "{method}");
    }
}

#[test]
fn ids_are_unique_and_references_resolve() {
    for page in pages() {
        let tags = tags(&page);
        let mut ids: Vec<&str> =
            tags.iter().filter_map(|tag| attribute(tag, " id").or(attribute(tag, "id"))).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id occurs twice");
        for tag in &tags {
            for id in attribute(tag, "aria-labelledby").unwrap_or_default().split_whitespace() {
                assert!(ids.contains(&id), "no element {id}");
            }
            if let Some(link) = attribute(tag, "href") {
                assert!(
                    link.strip_prefix('#').is_some_and(|id| ids.contains(&id)),
                    "{link} leads out of the page"
                );
            }
        }
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for page in pages() {
        for scheme in ["http:", "https:", "url(", "@import", "file:", "//cdn"] {
            assert!(!page.contains(scheme), "{scheme}");
        }
        for tag in tags(&page) {
            for name in ["src", "srcset", "data", "action", "poster"] {
                assert_eq!(attribute(&tag, &format!(" {name}")), None, "<{}>", tag.name);
            }
            assert!(
                !["link", "img", "iframe", "object", "embed", "base", "form"].contains(&tag.name),
                "{}",
                tag.name
            );
        }
    }
}

#[test]
fn machine_text_stays_text() {
    let page = page(&fixture::document()).unwrap();
    // The page's own script, and the data.
    assert_eq!(tags(&page).iter().filter(|tag| tag.name == "script" && !tag.closes).count(), 2);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;"));
    assert!(!page.contains("<b>\""));
}

#[test]
fn it_is_small_however_large_the_machine() {
    let cpus: Vec<u32> = (2..66).collect();
    for document in [fixture::document(), fixture::wide(&cpus)] {
        let page = page(&document).unwrap();
        assert!(page.len() < 500_000, "{} bytes", page.len());
        assert_balanced(&page);
    }
}

/// Ten minutes of four cores: every list as long as an analysis makes it, and no two neighbours
/// alike.
#[test]
fn ten_minutes_of_four_cores_fit_the_budget() {
    let mut document = fixture::wide(&[2, 3, 4, 5]);
    for window in &mut document.analysis.distributions {
        window.by_us = (0..stats::linear::BINS).map(|us| [us, 1 + us * 7919 % 613]).collect();
        let bucket =
            |k: i64| Bucket { low_ns: 1_000 + k * 50, high_ns: 1_050 + k * 50, count: 1 + k * 31 % 997 };
        window.histogram = (0..140).map(bucket).collect();
        for (slot, maximum) in window.timeline.iter_mut().enumerate() {
            maximum.max_ns += slot as i64 * 7919 % 6_007;
        }
    }
    for window in &mut document.analysis.events {
        window.slot_ns = window.duration_ns / 200;
        for row in window.classes.iter_mut().filter(|row| row.count > 0) {
            row.over_time = (0..200u32).map(|slot| slot * 7919 % 101).collect();
        }
    }
    let page = page(&document).unwrap();
    assert!(page.len() < 500_000, "{} bytes", page.len());
    assert_balanced(&page);
}

#[test]
fn marks_of_direction_and_controls_are_shown_as_what_they_are() {
    let mut document = fixture::document();
    document.machine.machine.cpu_model = Some("CPU\u{202e}gpj.exe\u{7}".into());
    document.run.command.push("a\u{200b}b".into());
    for window in &mut document.analysis.attribution {
        window.rows.iter_mut().for_each(|row| row.label = "x\u{2066}</code><script>".into());
    }
    let page = page(&document).unwrap();
    let body = &page[..page.find("id=\"figures\"").unwrap()];
    assert!(!body.contains(model::foreign::is_unseen), "something unseen is in the page");
    assert!(body.contains("CPU\u{fffd}gpj.exe") && body.contains("a\u{fffd}b"));
    assert!(!body.contains("</code><script>"));
}

#[test]
fn the_answer_stands_before_everything_else_and_the_audit_after_the_numbers() {
    let page = page(&fixture::document()).unwrap();
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}"));
    let order = ["class=\"verdict", "class=\"tiles", "class=\"anatomy", "class=\"next"];
    assert!(order.windows(2).all(|two| at(two[0]) < at(two[1])));
    assert!(at("class=\"next") < at("What is wrong") && at("id=\"wakeup\"") < at("id=\"findings\""));
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    assert_eq!(page(&fixture::document()).unwrap(), page(&fixture::document()).unwrap());
}

#[test]
fn tables_have_captions_and_scoped_headers() {
    for page in pages() {
        let tags = tags(&page);
        let opened = |name: &str| tags.iter().filter(|tag| tag.name == name && !tag.closes).count();
        assert_eq!(opened("table"), opened("caption"));
        assert!(tags.iter().filter(|t| t.name == "th" && !t.closes).all(|t| t.attributes.contains("scope=")));
    }
}

#[test]
fn no_value_is_printed_as_a_placeholder() {
    for page in pages() {
        let body = &page[page.find("<main>").unwrap()..page.find("<footer>").unwrap()];
        for placeholder in [">none<", "undefined", "NaN", "inf ", "null"] {
            let allowed =
                placeholder == ">none<" && page.contains("<th scope=\"col\" class=\"l\">failed</th>");
            // The object for schedulability analysis is JSON, and says so below.
            let allowed = allowed || placeholder == "null" && page.contains("null is not 0");
            assert!(allowed || !body.contains(placeholder), "{placeholder}");
        }
    }
}

#[test]
fn charts_are_drawn_where_there_are_samples_and_left_out_where_not() {
    let pages = pages();
    let charts = |page: &str| page.matches("<svg class=\"chart\"").count();
    // The exceedance and the worst wake-up of the opening; two a CPU over time, two for wake-up,
    // two for noise; the latency plot, two for events, three for where latencies went, one a unit
    // of what was compared; parts of a window and two profiles.
    assert_eq!(charts(&pages[0]), 2 + 2 * 2 + 2 * 2 + 2 * 2 + 1 + 2 + 3 + 3 + 3);
    assert_eq!(charts(&pages[2]), 2 + 2 + 2 + 2 + 1 + 2 + 3 + 3 + 3);
    assert_eq!(charts(&pages[3]), 0);
}

//! Plots of random data in the browser: no label lies over another, whatever the data.

use analysis::distribution::{Bucket, Maximum};
use report::svg::{
    Band, Cell, Course, Curve, ForestRow, IntervalAxis, IntervalRow, LaneSpan, Limit, Mark, Piece, Room,
    Segment, Spread, StackedRow, StepRow, Stretch, Tail, Upright, course, exceedance, forest, heatmap,
    histogram, intervals, lanes, spread, stacked, steps, timeline, wake,
};
use stats::slots::Slot;

use super::page::Page;
use super::webdriver::{Browser, have_browser};
use super::{report, store};

/// Plots of each kind.
const EACH: u64 = 10;
const KINDS: u64 = 12;

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % end.max(1)
    }

    /// From some ns to some s, every decade as likely as another.
    fn time_ns(&mut self) -> i64 {
        let decade = 10i64.pow(1 + self.below(8) as u32);
        decade + self.below(decade as u64 * 9) as i64
    }

    fn times(&mut self, n: u64) -> Vec<i64> {
        let mut times: Vec<i64> = (0..n).map(|_| self.time_ns()).collect();
        times.sort_unstable();
        times
    }
}

fn curves(random: &mut Random) -> Vec<Curve> {
    let names = ["idle-before", "disturbed", "idle-after"];
    let count = 1 + random.below(3) as usize;
    let curve = |style: usize, random: &mut Random| {
        let n = 1 + random.below(40);
        let ends = random.times(n);
        let bucket = |low: &i64, random: &mut Random| {
            let count = 1 + random.below(10_000) as i64;
            Bucket { low_ns: *low, high_ns: *low + *low / 8 + 1, count }
        };
        let histogram: Vec<Bucket> = ends.iter().map(|low| bucket(low, random)).collect();
        let n: i64 = histogram.iter().map(|one| one.count).sum();
        let max_ns = *ends.last().unwrap();
        Curve { label: names[style].to_owned(), style, histogram, max_ns, total: n as f64 }
    };
    (0..count).map(|style| curve(style, random)).collect()
}

fn bars(random: &mut Random, id: &str) -> Option<String> {
    let words = ["topic to node", "switch", "tick", "CPU time of a long name that says much"];
    let count = 1 + random.below(14);
    let bar = |at: u64, random: &mut Random| {
        let times = random.times(4);
        Spread {
            label: format!("{} {at}", words[random.below(4) as usize]),
            min_ns: times[0],
            median_ns: times[1],
            p99_ns: (random.below(2) == 0).then_some(times[2]),
            max_ns: times[3],
            calculated_ns: (random.below(3) == 0).then(|| random.time_ns()),
            deadline_ns: (random.below(3) == 0).then(|| random.time_ns()),
        }
    };
    let rows: Vec<Spread> = (0..count).map(|at| bar(at, random)).collect();
    spread(id, "Spread", "time", &rows, room(random))
}

fn phases(random: &mut Random, id: &str) -> Option<String> {
    let names = ["idle-before", "disturbed", "idle-after"];
    let length = 1_000_000 + random.time_ns();
    let band = |at: usize| Band {
        label: names[at].to_owned(),
        style: at,
        span_ns: [at as i64 * length, (at as i64 + 1) * length],
    };
    let bands: Vec<Band> = (0..3).map(band).collect();
    let stretch = |at: usize, part: usize, random: &mut Random| {
        let slots = 1 + random.below(30) as i64;
        let half = length / 2;
        let start = at as i64 * length + part as i64 * half;
        let slot = |slot: i64, random: &mut Random| Maximum {
            t_ns: start + half * slot / slots,
            max_ns: random.time_ns(),
            n: 1,
        };
        Stretch {
            label: ["wake-up", "noise"][part].to_owned(),
            style: at,
            slots: (0..slots).map(|one| slot(one, random)).collect(),
        }
    };
    let all: Vec<Stretch> = (0..6).map(|index| stretch(index / 2, index % 2, random)).collect();
    timeline(id, "Over time", &bands, &all)
}

fn gantt(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(40);
    let span = |_: u64, random: &mut Random| LaneSpan {
        lane: format!("task {}", random.below(5)),
        label: ["running", "waiting", "preempted"][random.below(3) as usize].to_owned(),
        from_ns: random.time_ns() as f64,
        ns: random.time_ns() as f64,
    };
    let mut spans: Vec<LaneSpan> = (0..count).map(|at| span(at, random)).collect();
    spans.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    lanes(id, "What ran when", &spans, room(random))
}

fn pairs(random: &mut Random, id: &str) -> Option<String> {
    let cpus = 2 + random.below(7) as u32;
    let pair = |from: u32, to: u32, random: &mut Random| {
        let times = random.times(3);
        Cell {
            from,
            to,
            min_ns: times[0],
            median_ns: times[1],
            max_ns: times[2],
            vague: random.below(2) == 0,
        }
    };
    let all = (0..cpus).flat_map(|from| (0..cpus).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let cells: Vec<Cell> = all.map(|(from, to)| pair(from, to, random)).collect();
    heatmap(id, "Wake-ups", &cells, &cells)
}

fn path(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(6);
    let ends = random.times(count);
    let mut from_ns = 0;
    let (mut pieces, mut marks) = (Vec::new(), Vec::new());
    for (style, end) in ends.iter().enumerate() {
        let (cpu, at_ns) = (random.below(3) as u32, *end as u64);
        let ran = (random.below(2) == 0).then(|| "kworker/0:1 flush".to_owned());
        pieces.push(Piece { from_ns, ns: at_ns - from_ns, cpu, style, ran });
        marks.push(Mark { at_ns, cpu, label: "timer expired".to_owned() });
        from_ns = at_ns;
    }
    wake(id, "A wake-up", 2, from_ns, &pieces, &marks)
}

fn means(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(8);
    let row = |at: u64, random: &mut Random| StepRow {
        label: format!("disturbed, CPU {at}"),
        segments: (0..8)
            .map(|style| Segment { label: format!("step {style}"), style, ns: random.time_ns() as f64 })
            .collect(),
    };
    let rows: Vec<StepRow> = (0..count).map(|at| row(at, random)).collect();
    steps(id, "Steps", "mean latency", &rows)
}

fn jobs(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(60) as i64;
    let apart = random.time_ns();
    let slot = |at: i64, random: &mut Random| {
        let times = random.times(2);
        Slot { t_ns: at * apart, least: times[0], most: times[1] }
    };
    let slots: Vec<Slot> = (0..count).map(|at| slot(at, random)).collect();
    let upright = if random.below(2) == 0 { Upright::Log } else { Upright::Linear };
    course(id, "Jobs", "time of a job", upright, &[Course { label: "response", style: 0, slots: &slots }])
}

/// Names as long as those of stressors and statements.
fn name(random: &mut Random, at: u64) -> String {
    let words =
        ["p99", "tlb_span: ipi.resched", "exceed:500us of wake-ups", "a statement of a paper that says much"];
    format!("{} {at}", words[random.below(4) as usize])
}

fn room(random: &mut Random) -> Room {
    if random.below(2) == 0 { Room::Desk } else { Room::Hand }
}

fn exposed(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(14);
    let row = |at: u64, random: &mut Random| {
        let times: Vec<f64> = random.times(3).into_iter().map(|ns| ns as f64 * 1e-6).collect();
        let seen = at == 0 || random.below(4) > 0;
        IntervalRow {
            label: name(random, at),
            point: seen.then_some(times[1]),
            interval: (random.below(5) > 0).then_some([times[0], times[2]]),
            class: format!("k{}", random.below(8)),
            note: format!("{:.3e} ({:.3e} to {:.3e})", times[1], times[0], times[2]),
        }
    };
    let rows: Vec<IntervalRow> = (0..count).map(|at| row(at, random)).collect();
    let axis = IntervalAxis { name: "events per operation", mark: (random.below(2) == 0).then_some(1.0) };
    let room = room(random);
    intervals(id, "Events per operation", axis, &rows, room)
}

fn tallies(random: &mut Random, id: &str) -> Option<String> {
    let count = 1 + random.below(10);
    let row = |at: u64, random: &mut Random| StackedRow {
        label: name(random, at),
        parts: ["good", "bad", "warn", "dim"].map(|class| (class, random.below(200) + at)).to_vec(),
        note: "123 reproduced, 4 refuted, 56 not decided, 78 not tested".to_owned(),
    };
    let rows: Vec<StackedRow> = (0..count).map(|at| row(at, random)).collect();
    let room = room(random);
    stacked(id, "Statements", &rows, room)
}

fn differences(random: &mut Random, id: &str) -> Option<String> {
    let unit = ["ns", "share", "per s", "of base"][random.below(4) as usize];
    let scale = match unit {
        "share" => 1e-12,
        "of base" => 1e-6,
        _ => 1.0,
    };
    let count = 1 + random.below(12);
    let row = |at: u64, random: &mut Random| {
        let mut times = random.times(3);
        if random.below(2) == 0 {
            times = times.into_iter().rev().map(|ns| -ns).collect();
        }
        let [low, point, high] = [0, 1, 2].map(|at: usize| times[at] as f64 * scale);
        ForestRow {
            label: name(random, at),
            point: Some(point),
            interval: Some([low, high]),
            margin: (random.below(2) == 0).then_some(high.abs() / 3.0),
            class: "warn",
            note: "cannot tell: +9.2 µs (\u{2212}12.1 ms to +18.3 ms)".to_owned(),
        }
    };
    let rows: Vec<ForestRow> = (0..count).map(|at| row(at, random)).collect();
    let room = room(random);
    forest(id, "Differences", unit, &rows, room)
}

fn draw(kind: u64, random: &mut Random, id: &str) -> Option<String> {
    match kind {
        0 => {
            let at_ns = random.time_ns() as f64;
            let limit = (random.below(2) == 0).then_some(Limit { at_ns, label: "tolerated jitter" });
            exceedance(id, "Exceedance", "wake-up latency", Tail::Share, &curves(random), limit)
        }
        1 => histogram(id, "Histogram", "wake-up latency", &curves(random)),
        2 => bars(random, id),
        3 => phases(random, id),
        4 => gantt(random, id),
        5 => pairs(random, id),
        6 => path(random, id),
        7 => means(random, id),
        8 => jobs(random, id),
        9 => differences(random, id),
        10 => exposed(random, id),
        _ => tallies(random, id),
    }
}

#[test]
fn more_than_a_hundred_plots_of_random_data_have_no_label_over_another() {
    if !have_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(report(folder.path(), "measure/ipi")).unwrap();
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let mut bodies = [String::new(), String::new()];
    for kind in 0..KINDS {
        for at in 0..EACH {
            let mut random = Random(kind * 1000 + at);
            let svg = draw(kind, &mut random, &format!("p{kind}-{at}")).unwrap();
            let hand = svg.contains("viewBox=\"0 0 400 ");
            let class = if hand { " class=\"hand\" style=\"display:block;width:368px\"" } else { "" };
            bodies[usize::from(hand)].push_str(&format!("<figure{class}>{svg}</figure>"));
        }
    }
    let browser = Browser::start(true, 1200, 900);
    let mut drawn = 0;
    // What is drawn for hands is looked at in one, where letters are larger.
    for (body, width) in bodies.iter().zip([1200, 400]) {
        let file = folder.path().join(format!("plots-{width}.html"));
        let text = format!(
            "<!doctype html><html lang=en><meta charset=utf-8><title>plots</title><style>{style}</style>\
             <h1>Plots</h1><section class=\"opening\"><h2>All {width}</h2>{body}</section></html>"
        );
        std::fs::write(&file, text).unwrap();
        browser.emulate(width, 900, false);
        let page = Page::read(&browser, &file);
        store(&browser, &format!("plots-{width}.png"));
        drawn += page.charts.len() as u64;
        assert_eq!(page.complaints(), [] as [&str; 0], "{width}");
    }
    assert_eq!(drawn, KINDS * EACH);
}

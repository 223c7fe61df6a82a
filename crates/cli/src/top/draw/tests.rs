//! Every size and pane as the user sees it, and names that would drive a terminal.
//! `SNAPSHOTS=overwrite cargo test -p stillcore --bin stillcore top` writes the screens anew.

use super::super::shot::{Facts, Seen};
use super::super::state::{Action, Key};
use super::*;
use attribution::attribute::Confidence;
use attribution::live::view::{Latency, LiveView, Losses, Running};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use std::collections::BTreeMap;
use std::path::Path;

const HOSTILE: &str = "\u{1b}]0;x\u{7}\t\u{202e}\u{fffd}";

fn row(cpu: u32, class: EventClass, label: &str, sums: [u64; 3]) -> RowView {
    let [count, ns, max_ns] = sums;
    RowView {
        cpu,
        class,
        label: label.to_owned(),
        pid: None,
        source: None,
        confidence: None,
        count,
        ns,
        minute_count: count * 60,
        minute_ns: ns * 60,
        total_count: count * 73,
        total_ns: ns * 73,
        max_ns,
    }
}

fn shot() -> Shot {
    let source =
        SourceText { site: Some("flush_tlb_func".to_owned()), ..SourceText::new(0, "kworker/0:1", Some(9)) };
    let call = RowView {
        source: Some(source.clone()),
        confidence: Some(Confidence::Order),
        ..row(2, EventClass::IpiCall, "flush_tlb_func", [61, 61_000, 3_100])
    };
    let hostile = RowView { pid: Some(812), ..row(2, EventClass::Switch, HOSTILE, [1, 412_000, 388_000]) };
    let rows = vec![
        row(2, EventClass::TimerTick, "tick_nohz_handler", [1, 20_000, 20_300]),
        call,
        hostile,
        row(3, EventClass::Softirq, "RCU", [4, 9_000, 2_600]),
    ];
    let running = |pid, comm: &str, policy: &str| {
        Some(Running { pid, comm: comm.to_owned(), policy: policy.to_owned(), since_ns: 61_000_000_000 })
    };
    let latency = Latency {
        tid: 4711,
        comm: "SCADA".to_owned(),
        n: 60_000,
        last_ns: Some(4_000),
        p999_ns: 38_000,
        max_ns: 412_000,
    };
    let part = |step: &str, ns, source: Option<SourceText>| PartView {
        step: step.to_owned(),
        cpu: 2,
        confidence: source.as_ref().map(|_| Confidence::Exact),
        taken: source.as_ref().map(|_| format!("interrupts off {HOSTILE}")),
        class: source.as_ref().map(|_| EventClass::TimerHrtimer),
        source,
        ns,
    };
    let worst = WorstView {
        cpu: 2,
        t_ns: 50_000_000_000,
        ns: 412_000,
        is_wakeup: true,
        what: "wake-up of SCADA[4711]".to_owned(),
        parts: vec![
            part("timer late", 388_000, Some(source)),
            part("IPI in flight", 9_000, None),
            part("switch", 15_000, None),
        ],
    };
    let view = LiveView {
        t_ns: 73_000_000_000,
        began_ns: 0,
        second_ns: 1_000_000_000,
        cpus: vec![
            CpuView {
                cpu: 2,
                running: running(4711, "SCADA", "F80"),
                latency: Some(latency),
                maxima_ns: (0..60).map(|s| if s == 37 { 412_000 } else { 38_000 }).collect(),
            },
            CpuView {
                cpu: 3,
                running: running(0, "swapper/3", ""),
                latency: None,
                maxima_ns: vec![9_000, 11_000, 3_000],
            },
        ],
        rows,
        worst: vec![worst],
        losses: Losses::default(),
        events: 12_345,
        self_ns: 1,
    };
    Shot {
        seen: Seen { view, lost: Some(0), note: None },
        wall_ns: 1_764_268_927_000_000_000,
        own_percent: 0.3,
        late: false,
        steal_ms: BTreeMap::from([(2, 0), (3, 10)]),
        drifted: Some(vec!["irq 34 eth0: moved to CPUs 0-3".to_owned()]),
    }
}

fn facts() -> Facts {
    Facts {
        title: "top",
        host: "rt-box".to_owned(),
        kernel: "6.12-rt".to_owned(),
        cpus: "2-3".to_owned(),
        keys: true,
        ..Facts::default()
    }
}

fn state(facts: Facts) -> State {
    let mut state = State::new(facts);
    state.push(shot());
    state
}

/// What a terminal of that size has on it.
fn screen(state: &State, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            let lines = draw(state, Size { columns, rows });
            assert_eq!(lines.len(), usize::from(rows));
            assert!(lines.iter().all(|line| line.width() <= usize::from(columns)), "{columns}x{rows}");
            for (y, line) in (0..rows).zip(&lines) {
                frame.buffer_mut().set_line(0, y, line, columns);
            }
        })
        .unwrap();
    let cells = terminal.backend().buffer().content().chunks(usize::from(columns));
    let line = |cells: &[ratatui_core::buffer::Cell]| {
        cells.iter().map(ratatui_core::buffer::Cell::symbol).collect::<String>().trim_end().to_owned() + "\n"
    };
    cells.map(line).collect()
}

fn assert_shown(name: &str, shown: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/draw/shown").join(name);
    snapbox::assert_data_eq!(shown.to_owned(), snapbox::Data::read_from(&file, None).raw());
}

#[test]
fn the_screen_at_every_size() {
    for (columns, rows) in [(80, 24), (60, 20), (200, 60)] {
        assert_shown(&format!("{columns}x{rows}.txt"), &screen(&state(facts()), columns, rows));
    }
}

#[test]
fn counters_and_ascii_are_said_and_drawn() {
    let mut state = State::new(Facts { ascii: true, ..facts() });
    let view = LiveView { worst: Vec::new(), ..shot().seen.view };
    let note = Some("no root: counters only, no sources".to_owned());
    state.push(Shot { seen: Seen { view, lost: None, note }, drifted: None, ..shot() });
    let shown = screen(&state, 80, 24);
    assert!(shown.is_ascii(), "{shown}");
    assert!(shown.lines().nth(1).unwrap().starts_with("no root: counters only, no sources"));
    assert!(shown.contains("counter") && !shown.contains("WORST") && !shown.contains("lost"), "{shown}");
}

#[test]
fn nothing_from_outside_drives_the_terminal_in_any_pane() {
    for keys in [&[][..], &[Key::Enter], &[Key::Down, Key::Enter], &[Key::Char('x')], &[Key::Char('?')]] {
        let mut state = state(Facts { host: HOSTILE.to_owned(), kernel: HOSTILE.to_owned(), ..facts() });
        for key in keys {
            assert_eq!(state.key(*key), Action::Nothing);
        }
        for c in HOSTILE.chars() {
            state.key(Key::Char('/'));
            state.key(Key::Char(c));
        }
        for (columns, rows) in [(80, 24), (60, 20), (200, 60), (1, 1), (0, 0), (7, 3)] {
            let lines = draw(&state, Size { columns, rows });
            let text: String =
                lines.iter().flat_map(|line| line.spans.iter().map(|span| span.content.clone())).collect();
            assert!(!text.chars().any(|c| c.is_control() || model::foreign::is_unseen(c)), "{text:?}");
            assert!(lines.len() <= usize::from(rows));
        }
    }
    assert_eq!(harmless(HOSTILE), "\\x1b]0;x\\x07\\x09\\u{202e}\\u{fffd}");
    assert_eq!((fit("abcdef", 4), fit("ab", 4)), ("abc~".to_owned(), "ab  ".to_owned()));
}

#[test]
fn keys_sort_filter_freeze_and_explain() {
    let mut state = state(facts());
    let first = |state: &State| state.rows(&shot())[0].class;
    assert_eq!(first(&state), EventClass::Switch);
    state.key(Key::Char('s'));
    assert_eq!(first(&state), EventClass::IpiCall);
    state.key(Key::Char('S'));
    assert_eq!(first(&state), EventClass::TimerTick);
    for key in ['/', 'r', 'c', 'u'] {
        state.key(Key::Char(key));
    }
    state.key(Key::Enter);
    assert_eq!(state.rows(&shot()).len(), 1);
    state.key(Key::Char('f'));
    state.push(Shot { own_percent: 99.0, ..shot() });
    assert!((state.shot().unwrap().own_percent - 0.3).abs() < 1e-9);
    assert!(screen(&state, 80, 24).contains("FROZEN -1s"));
    state.key(Key::Right);
    assert!((state.shot().unwrap().own_percent - 99.0).abs() < 1e-9);
    state.key(Key::Char('f'));
    state.key(Key::Enter);
    assert!(screen(&state, 80, 24).contains("on CPU 0: kworker/0:1[9], in flush_tlb_func (exact)"));
    assert_eq!(state.key(Key::Char('q')), Action::Nothing);
    assert_eq!(state.key(Key::Char('q')), Action::Quit);
    state.key(Key::Char('t'));
    state.key(Key::Char('a'));
    assert_eq!(state.key(Key::Enter), Action::Follow("a".to_owned()));
    assert_eq!((state.key(Key::Char('r')), state.key(Key::CtrlC)), (Action::Reset, Action::Quit));
}

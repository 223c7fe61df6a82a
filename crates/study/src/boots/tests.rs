//! The chain against a machine that goes down at any moment: what it ends with is what an
//! undisturbed one ends with.

use super::*;
use crate::experiment::Needs;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn a_cell_says_which_boot_it_needs() {
    let needs = Needs {
        boot: vec![vec!["nohz_full={cpus}".to_owned(), "isolcpus=".to_owned()]],
        kernel: Some("6.1".to_owned()),
        ..Needs::default()
    };
    let boot = BootOf::of(&needs, "2,3", "0,1");
    assert_eq!(boot.words(), "6.1 with nohz_full=2,3, without isolcpus");
    let isolated = Needs { isolated: Some(true), kernel: Some("6.1".to_owned()), ..Needs::default() };
    assert_eq!(BootOf::of(&isolated, "2,3", "0,1").with, ["isolcpus=2,3", "nohz_full=2,3"]);
    let not = Needs { isolated: Some(false), ..isolated };
    assert_eq!(BootOf::of(&not, "2,3", "0,1").without, ["isolcpus"]);
    assert_eq!(BootOf::of(&Needs::default(), "2,3", "0,1").words(), "any boot");
}

/// Where a power cut strikes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// Before the step is stored.
    BeforeStored,
    /// Once it is stored and not begun.
    Stored,
    /// While the kernel boots: the choice for one boot is used up.
    Booting,
    /// After so many cells.
    After(usize),
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        Just(Cut::BeforeStored),
        Just(Cut::Stored),
        Just(Cut::Booting),
        (0..4usize).prop_map(Cut::After)
    ]
}

/// A machine: stages of so many cells each, of which some kernels panic.
struct Machine {
    cells: Vec<usize>,
    panics: BTreeSet<usize>,
    results: BTreeSet<(usize, usize)>,
    /// What runs: a stage, or the machine's own boot.
    runs: Option<usize>,
    /// What is chosen for the next boot.
    chosen: Option<usize>,
    boots: usize,
    /// The chain as stored.
    stored: String,
}

impl Machine {
    fn new(cells: &[usize], panics: &[usize]) -> Self {
        // The line of a stage says which one it is.
        let stage = |(at, _): (usize, &usize)| Stage {
            boot: BootOf { kernel: Some("6.1".to_owned()), ..BootOf::default() },
            release: String::new(),
            line: at.to_string(),
            failures: 0,
            done: false,
            given_up: None,
        };
        let chain = Chain {
            schema: CHAIN_SCHEMA.to_owned(),
            cpus: "1".to_owned(),
            kernels: Vec::new(),
            home: Home { release: String::new(), line: String::new() },
            stages: cells.iter().enumerate().map(stage).collect(),
            last: None,
            stopped: false,
            returned: false,
        };
        Self {
            cells: cells.to_vec(),
            panics: panics.iter().copied().collect(),
            results: BTreeSet::new(),
            runs: None,
            chosen: None,
            boots: 0,
            stored: serde_json::to_string(&chain).unwrap(),
        }
    }

    /// The machine goes down, and comes up with what was chosen, unless that panics or is cut.
    fn boot(&mut self, cut: bool) {
        self.boots += 1;
        self.runs = self.chosen.take().filter(|at| !cut && !self.panics.contains(at));
    }

    /// Does the next step; whether there was one.
    fn step(&mut self, cut: Option<Cut>) -> bool {
        let mut chain: Chain = serde_json::from_str(&self.stored).unwrap();
        let runs = self.runs;
        let other = |at: usize| (runs != Some(at)).then(|| "another boot".to_owned());
        let differs: Vec<_> = (0..self.cells.len()).map(other).collect();
        let boot_id = self.boots.to_string();
        let results = self.results.len();
        let now = Now { boot_id: &boot_id, results, differs: &differs, at_home: runs.is_none() };
        let step = chain.next(&now);
        if cut == Some(Cut::BeforeStored) {
            self.boot(false);
            return true;
        }
        self.stored = serde_json::to_string(&chain).unwrap();
        if cut == Some(Cut::Stored) {
            self.boot(false);
            return true;
        }
        match step {
            Step::Run(at) => {
                for cell in 0..self.cells[at] {
                    if cut == Some(Cut::After(cell)) {
                        self.boot(false);
                        return true;
                    }
                    self.results.insert((at, cell));
                }
                chain.done(at);
                self.stored = serde_json::to_string(&chain).unwrap();
            }
            Step::Boot(at) => {
                self.chosen = Some(at);
                self.boot(cut == Some(Cut::Booting));
            }
            Step::Home => {
                self.chosen = None;
                self.boot(false);
            }
            Step::Report => return false,
        }
        true
    }

    fn chain(&self) -> Chain {
        serde_json::from_str(&self.stored).unwrap()
    }
}

#[test]
fn a_kernel_that_panics_is_given_up_and_the_others_run() {
    let mut machine = Machine::new(&[2, 3, 1], &[1]);
    let mut steps = 0;
    while machine.step(None) {
        steps += 1;
        assert!(steps < 50);
        let others_ran = machine.results.contains(&(2, 0));
        assert!(others_ran || machine.chain().stages[1].failures < 2, "the others come before a second try");
    }
    assert_eq!(machine.results, BTreeSet::from([(0, 0), (0, 1), (2, 0)]));
    let why = machine.chain().stages[1].given_up.clone().unwrap();
    assert_eq!(why, "did not come up: another boot (5 times)");
    assert_eq!(machine.runs, None, "it ends in its own boot");
}

#[test]
fn a_cell_that_brings_the_machine_down_does_not_do_so_for_ever() {
    let mut machine = Machine::new(&[1, 1], &[]);
    let mut steps = 0;
    // Whatever runs in the first stage goes down at once.
    loop {
        let cut = (machine.runs == Some(0)).then_some(Cut::After(0));
        if !machine.step(cut) {
            break;
        }
        steps += 1;
        assert!(steps < 50);
    }
    assert_eq!(machine.results, BTreeSet::from([(1, 0)]));
    assert!(machine.chain().stages[0].given_up.is_some());
}

#[test]
fn stopped_it_goes_home_and_runs_no_more() {
    let mut machine = Machine::new(&[2, 2], &[]);
    machine.step(None);
    let mut chain = machine.chain();
    chain.stopped = true;
    machine.stored = serde_json::to_string(&chain).unwrap();
    while machine.step(None) {}
    assert!(machine.results.is_empty());
    assert_eq!(machine.runs, None);
}

proptest! {
    /// Power cuts at up to ten random moments: the results of an undisturbed run, in the machine's
    /// own boot at the end.
    #[test]
    fn power_cuts_change_no_result(
        cells in prop::collection::vec(1..4usize, 1..5),
        cuts in prop::collection::vec((1..5usize, cut()), 10),
    ) {
        let mut undisturbed = Machine::new(&cells, &[]);
        while undisturbed.step(None) {}
        let mut machine = Machine::new(&cells, &[]);
        let mut steps = 0;
        let (mut cuts, mut pause) = (cuts.into_iter(), 0);
        loop {
            steps += 1;
            prop_assert!(steps < 500);
            // A boot that has failed four times is spared: a fifth time is no accident any more.
            let chain = machine.chain();
            let unsettled = u32::from(chain.last.is_some());
            let spared = chain.stages.iter().any(|stage| stage.failures + unsettled >= 4);
            let cut = if pause == 0 && !spared { cuts.next() } else { None };
            pause = cut.map_or(pause, |(next, _)| next).saturating_sub(1);
            if !machine.step(cut.map(|(_, cut)| cut)) {
                break;
            }
        }
        prop_assert_eq!(machine.results, undisturbed.results);
        prop_assert_eq!(machine.runs, None);
    }
}

//! `turns.json`: which command ran when, and what came of it. Written after every turn, so that a
//! comparison that was cut off keeps what was done.

use super::command::Command;
use crate::run::output::new_directory;
use model::{Error, store};
use serde::Serialize;
use std::path::PathBuf;

/// Names of the sides: as in a comparison of directories.
pub(super) const SIDES: [&str; 2] = ["base", "other"];
/// The file.
const FILE: &str = "turns.json";

/// All turns so far.
#[derive(Serialize)]
pub(super) struct Record {
    schema: &'static str,
    /// Words of both commands.
    pub(super) commands: [Vec<String>; 2],
    /// Seed of the order in each pair.
    pub(super) seed: u64,
    /// Pairs to compare.
    pub(super) planned: u32,
    /// Pairs before them.
    pub(super) warm_up: u32,
    /// The signal that ended it early.
    pub(super) interrupted: Option<&'static str>,
    /// In the order in which they ran.
    pub(super) turns: Vec<Turn>,
    /// Where it is stored, if anywhere.
    #[serde(skip)]
    pub(super) dir: Option<PathBuf>,
    /// Whether the commands make runs.
    #[serde(skip)]
    make_runs: bool,
}

/// One run of one command.
#[derive(Serialize)]
pub(super) struct Turn {
    /// Number of the pair, from 0, the warm-up included.
    pub(super) pair: u32,
    /// One of [`SIDES`].
    pub(super) side: &'static str,
    /// Whether it is not compared.
    pub(super) warm_up: bool,
    /// Wall time, ns.
    pub(super) wall_ns: i64,
    /// Exit status; none where a signal ended it.
    pub(super) exit: Option<i32>,
    /// The run directory, of a command that makes one.
    pub(super) run: Option<String>,
}

impl Record {
    /// Of two commands that have not run yet, with so many pairs to compare and before them.
    pub(super) fn create(
        dir: Option<PathBuf>,
        commands: &[Command; 2],
        seed: u64,
        [planned, warm_up]: [u32; 2],
    ) -> anyhow::Result<Self> {
        let make_runs = commands[0].makes_run;
        dir.iter().try_for_each(|dir| new_directory(dir))?;
        let words = |command: &Command| {
            command.words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let commands = [words(&commands[0]), words(&commands[1])];
        let schema = "stillcore.turns/1";
        let record = Self {
            schema,
            commands,
            seed,
            planned,
            warm_up,
            interrupted: None,
            turns: Vec::new(),
            dir,
            make_runs,
        };
        record.save()?;
        Ok(record)
    }

    /// Where a turn writes its run, for a command that makes one.
    pub(super) fn run_of(&self, side: usize, pair: u32) -> Option<PathBuf> {
        let dir = self.dir.as_ref().filter(|_| self.make_runs)?;
        Some(match pair.checked_sub(self.warm_up) {
            Some(number) => dir.join(SIDES[side]).join(format!("{:03}", number + 1)),
            None => dir.join("warm-up").join(format!("{}-{:03}", SIDES[side], pair + 1)),
        })
    }

    /// The turns of one command that are compared: those of whole pairs.
    pub(super) fn compared(&self, side: usize) -> impl Iterator<Item = &Turn> {
        let whole = self.warm_up + self.pairs();
        self.turns.iter().filter(move |turn| turn.side == SIDES[side] && !turn.warm_up && turn.pair < whole)
    }

    /// Whole pairs that are compared.
    pub(super) fn pairs(&self) -> u32 {
        (self.turns.iter().filter(|turn| !turn.warm_up).count() / 2) as u32
    }

    /// Stores it, where there is a place.
    pub(super) fn save(&self) -> Result<(), Error> {
        self.dir.as_ref().map_or(Ok(()), |dir| store::write_json(&dir.join(FILE), self))
    }

    /// The same as a part of an answer.
    pub(super) fn to_json(&self) -> anyhow::Result<serde_json::Value> {
        Ok(serde_json::to_value(self)?)
    }
}

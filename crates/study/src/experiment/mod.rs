//! An experiment: a published table or figure as a declared matrix of this program's own verbs.
//! Published results stand beside measured ones.
//!
//! One idea a file:
//!
//! | file | idea |
//! |---|---|
//! | `declared` | the file, as read from TOML |
//! | `level` | one level of a factor, and what it stands for on a command line and at boot |
//! | `needs` | what a cell needs of a machine, and whether a machine has it |
//! | `boot_word` | one word of a boot line against a machine as it booted |
//! | `under` | what a cell was measured under; results of different machines, kernels or boot lines kept apart |
//! | `differing` | in what a declaration differs from another of its name |
//! | `quantity` | durations and counts that a scale makes smaller |
//! | `fault` | what is wrong with a file, and where in it |
//! | `check` | everything that can be wrong before anything is started |
//! | `words` | a cell's commands: placeholders filled in |
//! | `plan` | cells, boots, and how long they take |
//! | `taken` | values taken from the JSON that a verb printed |
//! | `list` | values by name, such as one per topic |
//! | `result` | what is stored of a cell |
//! | `part` | what a directory says of itself, and parts put together |
//! | `claims` | statements on groups of cells, a verdict a kernel |
//! | `decidable` | what the repetitions of a plan can decide of them |
//! | `published` | numbers of papers, by key |
//! | `conclude` | repetitions put together, beside what was published |
//! | `table` | the same as rows and columns |
//! | `ablation` | what each of some mechanisms is worth, and the smallest sets that suffice |
//! | `figure` | the same as what is drawn: panels of curves, distributions, lanes |
//!
//! Nothing is run here: what runs a cell is the caller's.

mod ablation;
mod boot_word;
mod check;
mod claims;
mod conclude;
mod concluded;
mod decidable;
mod declared;
mod differing;
mod factors;
mod fault;
mod figure;
mod ground;
mod list;
mod load;
mod needs;
mod part;
mod parts;
mod plan;
mod published;
mod quantity;
mod result;
mod sheet;
mod table;
mod taken;
mod under;
mod words;

#[cfg(test)]
mod tests;

pub use ablation::{Ablated, LeftOut, ablated};
pub use check::undone_in;
pub use conclude::conclude;
pub use concluded::{Beside, Claimed, Concluded, Figures, Group, Judgement, Summary};
pub use decidable::{Decidable, Limit, decidable};
pub use declared::{
    Cells, Claim, EXPERIMENT_SCHEMA, Experiment, Factor, Machine, PublishedAt, SeriesOf, Step, Table,
    ValueKind, ValueOf,
};
pub use factors::{KERNEL, SETTING};
pub use fault::Fault;
pub use figure::{Bins, Curve, Drawn, Panel, Point, Quantiles, Span, Spread, Trail, panels};
pub use ground::Ground;
pub use list::listed;
pub use load::{Load, loads};
pub use needs::{Needs, boot_line, kernel_name, kernel_named};
pub use part::{Gathered, PART_SCHEMA, Part, PartsError, gather};
pub use parts::{Ablation, Conclusion, Figure, Kind, Level, ListOf, Take, Wants};
pub use plan::{Boot, Plan, Planned, expected};
pub use published::{Published, PublishedError};
pub use quantity::{Amount, Quantity};
pub use result::{CellResult, CellState, RESULT_SCHEMA, Row, Series, Under};
pub use sheet::Sheet;
pub use table::sheets;
pub use taken::{absent, rows, taken};
pub use under::{Apart, apart};
pub use words::{Commands, Place, commands, once_booted};

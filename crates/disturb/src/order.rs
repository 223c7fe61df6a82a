//! What is asked of a disturbance: which stressors, where, how much, how long.

use crate::protocol::Group;
use model::Cpus;
use std::path::PathBuf;
use std::time::Duration;

/// How a disturbance is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Arguments that lead the program to [`child::serve`](super::child::serve); name and JSON
    /// arguments follow.
    pub verb: Vec<String>,
    /// How long the stressors run unless stopped earlier.
    pub duration: Duration,
    /// CPUs that are measured, for stressors that have to have a thread there.
    pub measured: Cpus,
    /// Control groups to enter, from [`Confinement::groups`](super::confine::Confinement::groups).
    pub groups: Vec<Group>,
    /// Where tracefs is, for stressors that switch tracing; where it is mounted, if `None`.
    pub tracefs: Option<PathBuf>,
    /// Where stressors make files whose order does not say where; their own choice where that is
    /// `None`, too.
    pub dir: Option<PathBuf>,
    /// Nice value of the stressors: at 10 they get a tenth of what the tool's own housekeeping gets
    /// on a shared CPU.
    pub nice: i32,
    /// Whether operations begin only at [`Disturbance::go`](super::Disturbance::go), so that
    /// whoever measures is ready before the first one.
    pub held: bool,
    /// How long a stressor does nothing between its last operation and its end.
    pub linger: Duration,
}

/// One stressor to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Its name in the catalogue.
    pub name: String,
    /// Where it runs.
    pub cpus: Cpus,
    /// Operations per second; `None` is the stressor's own default, 0 as fast as it goes.
    pub rate: Option<f64>,
    /// Bytes to work on; `None` is its own choice.
    pub bytes: Option<u64>,
    /// Loops, or whatever it has several of; `None` is its own choice.
    pub workers: Option<u32>,
    /// Where it makes files, if it makes any; `None` is where [`Options`] say.
    pub dir: Option<PathBuf>,
}

impl Order {
    /// A stressor with nothing asked of it but where to run.
    pub fn plain(name: &str, cpus: &Cpus) -> Self {
        Self { name: name.to_owned(), cpus: cpus.clone(), rate: None, bytes: None, workers: None, dir: None }
    }
}

impl Default for Options {
    fn default() -> Self {
        let verb = ["internal", "stress"].map(str::to_owned).to_vec();
        Self {
            verb,
            duration: Duration::from_secs(20),
            measured: Cpus::default(),
            groups: Vec::new(),
            tracefs: None,
            dir: None,
            nice: 10,
            held: false,
            linger: Duration::ZERO,
        }
    }
}

//! What the stressors of an order will leave behind, known before they begin.

use crate::leaving::{Leaving, Mark};
use crate::{Error, Order, catalogue};
use std::fs;
use std::path::{Path, PathBuf};
use sys::tracefs;

/// What an order, the `number`th of the calling process, may leave. The same for as long as the
/// machine is the same.
pub fn of(order: &Order, number: usize, tracefs: Option<&Path>) -> Result<Vec<Leaving>, Error> {
    let spec = catalogue::find(&order.name)?;
    let mark = Mark {
        id: format!("{}-{number}", std::process::id()),
        cpus: &order.cpus,
        tracefs: tracefs.map(Path::to_owned).or_else(mounted),
    };
    Ok((spec.leaves)(&mark))
}

pub(crate) fn mounted() -> Option<PathBuf> {
    tracefs::mounted_at(&fs::read_to_string("/proc/mounts").ok()?)
}

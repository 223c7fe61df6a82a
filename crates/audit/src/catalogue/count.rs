//! How many mechanisms there are, and how many of them a machine can be asked about.

use super::{Catalogue, Layer, Probe};
use std::fmt;

/// Mechanisms by what can be known of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// All.
    pub all: usize,
    /// Those whose state is read on a running machine.
    pub read: usize,
    /// Options of the kernel's build.
    pub build: usize,
    /// Practices: nothing is read, and only a trace shows whether they are kept to.
    pub practices: usize,
}

impl Catalogue {
    /// Counts the mechanisms.
    pub fn count(&self) -> Count {
        let practice = |probe: &Probe| matches!(probe, Probe::Practice { .. });
        let all = self.mechanisms.len();
        let practices = self.mechanisms.iter().filter(|one| practice(&one.probe)).count();
        let build = self.mechanisms.iter().filter(|one| one.layer == Layer::Build).count();
        Count { all, read: all - practices - build, build, practices }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, read, build, practices } = self;
        write!(
            f,
            "{all} mechanisms: {read} can be read on a running machine, {build} are build options, {practices} are practices that nothing \
             on a machine shows"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mechanism_is_counted_once() {
        let count = Catalogue::embedded().unwrap().count();
        assert_eq!(count.all, count.read + count.build + count.practices);
        assert!(count.practices > 0 && count.build > 0, "{count}");
    }
}

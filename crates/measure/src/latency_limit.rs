//! A limit on how long CPUs may take to leave an idle state, held for the length of a measurement.
//!
//! The kernel keeps the limit as long as `/dev/cpu_dma_latency` is open and drops it with the
//! process, however that ends: nothing is left to undo (Documentation/power/pm_qos_interface.rst).
//! cyclictest sets a limit of 0 us, and so do our measurements by default: without it, leaving an
//! idle state is most of the latency of a wake-up on a quiet machine.

use std::fs::{File, OpenOptions};
use std::io::Write;
use sys::Error;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit that holds until this is dropped.
#[derive(Debug)]
pub struct LatencyLimit {
    _open: File,
}

impl LatencyLimit {
    /// Requests at most `us` microseconds; 0 keeps CPUs out of every idle state that takes time to
    /// leave.
    pub fn hold(us: i32) -> Result<Self, Error> {
        let failed = |source| Error::os("hold", DEVICE, source);
        let mut file = OpenOptions::new().write(true).open(DEVICE).map_err(failed)?;
        file.write_all(&us.to_ne_bytes()).map_err(failed)?;
        Ok(Self { _open: file })
    }
}

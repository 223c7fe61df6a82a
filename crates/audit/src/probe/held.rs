//! The limit on wake-up latency that some process holds on `/dev/cpu_dma_latency`, for all CPUs.
//!
//! Source: Linux `Documentation/power/pm_qos_interface.rst`. Reading gives the limit in force as a
//! binary number of microseconds; opening adds a request without a limit.

use super::super::catalogue::{Mechanism, Want};
use super::remedy::propose;
use super::unread::Unread;
use super::{Outcome, Scene};
use model::Error;
use std::io::Read;

const DEVICE: &str = "dev/cpu_dma_latency";

/// What the device reads when nobody holds a limit (`PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, 2000 s).
const UNLIMITED_US: i32 = 2_000_000_000;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism) -> Outcome {
    let limit = match limit(scene) {
        Ok(Some(limit)) => limit,
        Ok(None) => return Outcome::absent(mechanism),
        Err(reason) => return Outcome::unknown(reason),
    };
    let wanted = match mechanism.want {
        Want::AtMost { value } => value,
        _ => 0,
    };
    if i64::from(limit) <= wanted {
        return Outcome::ok(format!("somebody holds a limit of {limit} us")).having(spelled(limit));
    }
    let reason = match limit {
        UNLIMITED_US => format!("nobody holds a limit: {}", mechanism.harm),
        limit => format!("the strictest limit held is {limit} us: {}", mechanism.harm),
    };
    propose(scene, mechanism, &[], reason).having(spelled(limit))
}

pub(super) fn value(scene: &Scene) -> Option<String> {
    limit(scene).ok().flatten().map(spelled)
}

fn spelled(limit: i32) -> String {
    if limit == UNLIMITED_US { "no limit".to_owned() } else { format!("{limit} us") }
}

/// A device has no meaning in a captured tree.
fn limit(scene: &Scene) -> Result<Option<i32>, Unread> {
    if !scene.root.is_live() {
        return Err(Unread::Captured);
    }
    let path = scene.root.at(DEVICE);
    let mut bytes = [0u8; 4];
    let read = std::fs::File::open(&path).and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => Ok(Some(i32::from_ne_bytes(bytes))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", &path, error).into()),
    }
}

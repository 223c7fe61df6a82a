//! What nothing on a machine shows and nothing switches: only a trace tells whether it happened.

use super::Outcome;

pub(super) fn judge(advice: &str) -> Outcome {
    Outcome::unknown(format!("nothing to read; {}", advice.trim().trim_end_matches('.')))
}

//! What all measuring verbs share: where they measure, the run directory while it is being written,
//! and what the user sees.

pub(crate) mod command;
pub(crate) mod disturbed;
pub(crate) mod facts;
pub(crate) mod interrupted;
pub(crate) mod off_stretches;
pub(crate) mod output;
pub(crate) mod place;
pub(crate) mod progress;
pub(crate) mod recording;

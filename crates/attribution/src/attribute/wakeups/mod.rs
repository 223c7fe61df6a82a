//! The wake-ups of any threads, taken apart as if they were samples of a probe, and who interrupted
//! the CPUs that they ran on.
//!
//! When each was to run and when it ran is known already ([`super::watch::program::Wakeup`]); this
//! reads the trace once more. What a thread itself causes does not interfere with it, so each
//! thread that is taken apart on a CPU gets its own spans of that CPU.
//!
//! [`chosen`] selects the threads, [`feed`] decodes the trace into [`steps`], [`layers`] takes them
//! apart in a separate thread, [`apart`] names the results.

mod apart;
mod chosen;
mod feed;
mod layers;
mod steps;

pub(crate) use apart::Apart;
pub(crate) use chosen::{Chosen, choose};
pub(crate) use feed::Feed;

use super::paths::Keep;
use crate::Error;
use crate::damage::damage;
use crate::decode::Decoder;
use crate::holes::Hole;
use ftrace::{Item, Reader, TraceFile};

/// Reads some buffers of a trace within a window, both ends included, from the beginning.
pub(crate) fn take_apart(
    file: &TraceFile,
    decoder: &mut Decoder,
    buffers: &[&str],
    window: [i64; 2],
    chosen: &Chosen,
    keep: Keep,
) -> Result<Apart, Error> {
    decoder.begin();
    let mut feed = Feed::new(chosen, decoder.known(), window, keep);
    let records = decoder.records(file.formats());
    let mut stream = file.stream_buffers_for(Reader::Two, buffers)?;
    while let Some(item) = stream.next()? {
        let goes_on = match item {
            Item::Event(event) => {
                let record = records.read(&event);
                let names = decoder.tasks_mut().of_record(&record, event.cpu);
                feed.event(decoder, &event, &record, names)
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                feed.lost(Hole::new(cpu, after_ts_ns, before_ts_ns))
            }
        };
        if !goes_on {
            break;
        }
    }
    let apart = feed.finish(file, decoder, chosen, None, damage(&stream).collect());
    Ok(apart.expect("samples that are known before are right"))
}

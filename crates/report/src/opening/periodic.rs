//! The opening of periodic jobs: the victim's response time, releases missed, wrong outputs.

use super::{Card, Opening};
use crate::{Document, format, jobs};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let (record, process) =
        jobs::processes(&document.run, &document.analysis.periodic).min_by_key(|(_, one)| one.thread)?;
    let response = process.jobs.response_ns;
    let off_cpu = process.jobs.off_cpu_ns;
    let (missed, served) = (record.missed(), process.jobs.n);
    let due = served.saturating_add(missed);
    let releases = if document.run.has_ended() {
        format!("{} of {} releases missed", format::count(missed), format::count(due))
    } else {
        "how many releases it missed is not known".to_owned()
    };
    let sentence = match response.observed_max {
        Some(most_ns) => format!(
            "A job on CPU {} ended up to {} after its release; {releases}.",
            process.cpu,
            format::ns(most_ns)
        ),
        None => format!("No job on CPU {} was measured; {releases}.", process.cpu),
    };
    let time = |what: &str, figure: analysis::periodic::Figure| match (figure.observed_max, figure.mean) {
        (Some(most_ns), Some(mean)) => Card::of_one(
            format!("{what}, observed maximum"),
            format::ns(most_ns),
            format!("mean {}; n = {}", format::ns_f(mean), format::count(figure.n)),
        ),
        _ => Card::needing(format!("{what}, observed maximum"), "no job was measured"),
    };
    let cards = vec![
        time("Response time", response),
        time("Time off its CPU", off_cpu),
        Card::of_losses(document, "Releases missed", missed, format!("of {} due", format::count(due))),
    ];
    Some(Opening { sentence, cause: None, cards })
}

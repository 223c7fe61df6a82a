//! What the task model of a program guarantees, in a sentence.

use crate::format;
use analysis::task_model::verdict::Guarantee;
use std::fmt::Write;

/// The verdict, how far it is from the first late job, and under which condition.
pub fn sentence(guarantee: Option<&Guarantee>) -> String {
    let Some(guarantee) = guarantee else {
        return "Nothing can be guaranteed: no thread of the program can be modelled.".to_owned();
    };
    let late: Vec<&str> = guarantee
        .bounds
        .iter()
        .filter(|bound| bound.in_time() == Some(false))
        .map(|bound| bound.comm.as_str())
        .collect();
    match guarantee.schedulable {
        None => return "No thread has a deadline; the bounds of their response times are below.".to_owned(),
        Some(false) => {
            let deadlines = if late.len() == 1 { "its deadline" } else { "their deadlines" };
            return format!("Not schedulable: {} may miss {deadlines}.", late.join(", "));
        }
        Some(true) => {}
    }
    let mut text = match guarantee.spare_ppm {
        Some(ppm) => format!("Schedulable, with {} to spare", percent(ppm)),
        None => "Schedulable, even if all costs grow a hundredfold".to_owned(),
    };
    if let Some(first) = &guarantee.first {
        let grows = if first.grows == first.late { "it".to_owned() } else { first.grows.clone() };
        let _ = write!(
            text,
            "; the first to miss is {} if {grows} grows by {}",
            first.late,
            percent(first.by_ppm)
        );
    }
    if let Some(jitter_ns) = guarantee.jitter_ns {
        let jitter = format::ns(i64::try_from(jitter_ns).unwrap_or(i64::MAX));
        let _ = write!(text, "; {jitter} more release jitter breaks it");
    }
    text + "."
}

/// A growth: `18 %`, `3.4 times as much` beyond a doubling.
fn percent(ppm: u64) -> String {
    match ppm {
        0..10_000 => format!("{:.1} %", ppm as f64 / 1e4),
        10_000..1_000_000 => format!("{} %", ppm / 10_000),
        _ => format!("a factor of {:.1}", 1.0 + ppm as f64 / 1e6),
    }
}

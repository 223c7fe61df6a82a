//! A run as a fragment of HTML for notebooks: the answer, its conditions and a line a window.
//! Everything is escaped, and nothing needs a style sheet or a script: notebooks strip both from
//! what they do not trust.

use super::{environment, render, value};
use crate::distribution::{maximum, quantile};
use crate::document::Document;
use crate::error::Error;
use crate::{conditions, heading};
use analysis::distribution::Distribution;
use minijinja::context;

/// Quantiles shown.
const LEVELS: [f64; 3] = [0.5, 0.99, 0.999];

/// The fragment.
pub fn notebook(document: &Document) -> Result<String, Error> {
    let row = |d: &Distribution| {
        context! {
            probe => d.probe.name(),
            phase => d.phase.clone(),
            cpu => d.cpu,
            n => d.n,
            quantiles => LEVELS.map(|p| quantile(d, p)),
            max_ns => maximum(d),
            stolen => d.stolen.as_ref().map(|stolen| stolen.share),
        }
    };
    let values = context! {
        title => heading::title(&document.run),
        dir => document.dir.clone(),
        outcome => value(&document.outcome),
        conditions => value(&conditions::conditions(document)),
        levels => LEVELS.map(crate::format::quantile_name),
        rows => document.analysis.distributions.iter().map(row).collect::<Vec<_>>(),
    };
    render(&environment()?, "notebook", values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_window_has_a_line_and_names_are_escaped() {
        let mut document = fixture::document();
        document.dir = "<script>alert(1)</script>".into();
        document.analysis.distributions[0].phase = "<b>&\"".into();
        let fragment = notebook(&document).unwrap();
        let windows = document.analysis.distributions.len();
        assert_eq!(fragment.matches("<tr>").count(), windows + 1);
        assert!(!fragment.contains("<script") && !fragment.contains("<b>"), "{fragment}");
        assert!(fragment.contains("&lt;b&gt;"), "{fragment}");
        let reason = &document.outcome.reasons[0];
        assert!(fragment.to_lowercase().contains(&reason.to_lowercase()), "{fragment}");
    }
}

//! A table of results.

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// What its values are.
    pub title: String,
    /// Headings.
    pub head: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
}

/// Three digits, or all of a whole number.
pub(super) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else if magnitude >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

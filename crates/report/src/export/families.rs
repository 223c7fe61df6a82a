//! Families of metrics as text: OpenMetrics 1.0, and the older text format of Prometheus, which
//! textfile collectors and scrapers that ask for nothing else take.
//!
//! They differ in how a counter is declared (with `_total` in the older one), in `# UNIT` and in
//! `# EOF`. Sources: the OpenMetrics 1.0 specification, and "Exposition formats" of Prometheus.

use std::fmt::Write;

/// Families under construction: the samples of one must follow one another.
pub(super) struct Families {
    text: String,
    open: bool,
}

impl Families {
    /// As OpenMetrics.
    pub(super) fn open() -> Self {
        Self { text: String::new(), open: true }
    }

    /// As Prometheus' own text.
    pub(super) fn classic() -> Self {
        Self { text: String::new(), open: false }
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        let total = if kind == "counter" && !self.open { "_total" } else { "" };
        let _ = writeln!(self.text, "# TYPE {name}{total} {kind}");
        if let Some(unit) = unit.filter(|_| self.open) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name}{total} {}", escaped(help));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    /// The whole text.
    pub(super) fn end(self) -> String {
        if self.open { self.text + "# EOF\n" } else { self.text }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', " ")
}

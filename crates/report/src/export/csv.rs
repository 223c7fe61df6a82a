//! Values as CSV (RFC 4180): a header, one line per value, lines end in CR LF. A field with a
//! comma, quote or line end is quoted.
//!
//! A text that a spreadsheet would take for a formula is given an apostrophe (OWASP, "CSV
//! injection"): names of phases are the user's.

use super::figures::figures;
use crate::Document;
use std::fmt::Write;

/// The whole file.
pub fn csv(document: &Document) -> String {
    let mut text = "probe,phase,cpu,thread,class,figure,unit,value\r\n".to_owned();
    for one in figures(document) {
        let class = one.class.map_or("", model::EventClass::name);
        let _ = write!(
            text,
            "{},{},{},{},{class},{},{},{}\r\n",
            one.probe.name(),
            field(&one.phase),
            one.cpu,
            one.thread,
            field(&one.figure),
            one.unit,
            one.value
        );
    }
    text
}

fn field(text: &str) -> String {
    let text =
        if text.starts_with(['=', '+', '-', '@', '\t']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_line_has_every_field_whatever_a_phase_is_called() {
        let mut document = fixture::document();
        for one in &mut document.analysis.distributions {
            one.phase = "=cmd(),\"a\"\n".into();
        }
        let text = csv(&document);
        assert!(text.contains("wakeup,\"'=cmd(),\"\"a\"\"\n\",2,0,,n,1,"), "{text}");
        let plain = csv(&fixture::document());
        assert!(plain.lines().all(|line| line.matches(',').count() == 7));
        assert_eq!(plain.lines().count(), figures(&fixture::document()).len() + 1);
        assert!(plain.ends_with("\r\n"));
    }
}

//! Findings that a program's owners have looked at: a file with one a line.

use super::rules::{RULES, Rule};
use super::shape::{Finding, LintSection, Unused};
use model::Error;

/// One line: a rule, a thread's name (`*` at its end stands for any rest), and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// In its file.
    number: u64,
    rule: Rule,
    thread: String,
}

/// The lines of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Line>);

impl Suppressions {
    /// Reads `RULE THREAD # WHY`, one a line; empty lines and comments are skipped. `place` is what
    /// an error names.
    ///
    /// # Errors
    /// A line that names no rule, lacks the thread, or has more words; with its number.
    pub fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let text = line.split('#').next().unwrap_or_default().trim();
            let (name, thread) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let expected = |what: String, expected: String| {
                Err(Error::invalid(format!("{place}:{number}"), what, expected))
            };
            match (name, thread.trim()) {
                ("", _) => {}
                (_, "") => return expected(format!("{line:?}"), "RULE THREAD # WHY".to_owned()),
                (name, thread) => {
                    let Some((rule, ..)) = RULES.iter().find(|(_, known, ..)| *known == name) else {
                        let names: Vec<&str> = RULES.iter().map(|(_, name, ..)| *name).collect();
                        return expected(format!("rule {name:?}"), names.join(", "));
                    };
                    lines.push(Line { number, rule: *rule, thread: thread.to_owned() });
                }
            }
        }
        Ok(Self(lines))
    }

    /// Marks the findings that a line names, and notes the lines that name none.
    pub fn apply(&self, section: &mut LintSection) {
        for finding in &mut section.findings {
            finding.suppressed = self.0.iter().any(|line| line.names(finding));
        }
        let names_none = |line: &&Line| !section.findings.iter().any(|finding| line.names(finding));
        let unused = self.0.iter().filter(names_none);
        section.unused = unused
            .map(|line| Unused { line: line.number, rule: line.rule, thread: line.thread.clone() })
            .collect();
    }
}

impl Line {
    fn names(&self, finding: &Finding) -> bool {
        let is_thread = match self.thread.strip_suffix('*') {
            Some(start) => finding.comm.starts_with(start),
            None => finding.comm == self.thread,
        };
        self.rule == finding.rule && is_thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_suppresses_a_rule_in_threads_of_a_name() {
        let finding = |rule, comm: &str| Finding {
            rule,
            tid: 1,
            comm: comm.to_owned(),
            prio: None,
            detail: String::new(),
            n: 1,
            first_ns: None,
            callers: None,
            faults: None,
            suppressed: false,
        };
        let mut section = LintSection {
            findings: vec![
                finding(Rule::File, "logger1"),
                finding(Rule::File, "control"),
                finding(Rule::Signal, "logger1"),
            ],
            ..LintSection::default()
        };
        let text = "# ours\n\nfile logger* # it has its own CPU\nsignal other\n";
        Suppressions::parse("x", text).unwrap().apply(&mut section);
        let open: Vec<_> = section.open().map(|finding| (finding.rule, finding.comm.as_str())).collect();
        assert_eq!(open, [(Rule::File, "control"), (Rule::Signal, "logger1")]);
        let unused: Vec<_> = section.unused.iter().map(|one| (one.line, one.rule, &*one.thread)).collect();
        assert_eq!(unused, [(4, Rule::Signal, "other")]);
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let refused = |text| Suppressions::parse("x.lint", text).unwrap_err().to_string();
        assert!(
            refused("file a\nfiles b\n").starts_with("x.lint:2: rule \"files\""),
            "{}",
            refused("files b")
        );
        assert!(refused("file\n").contains("RULE THREAD # WHY"));
        // Names may have spaces.
        assert!(Suppressions::parse("x", "file  a b  # why\n").is_ok());
    }
}

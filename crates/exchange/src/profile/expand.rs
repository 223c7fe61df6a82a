//! Variables and functions in the values of a profile: `${NAME}` and `${f:FUNCTION:ARGUMENT:…}`.
//!
//! Nothing is executed. A function that would run a program, or is not known here, stays as it is
//! written, and so do variables that are not set; both are found by [`open`].

use super::functions;
use super::ini::Options;
use machine::Root;

/// The longest value: one that doubles with each variable reaches it, and stays as it is then.
const LONGEST: usize = 1 << 16;

/// The variables of a profile.
pub(super) struct Variables<'a> {
    known: Options,
    machine: &'a Root,
    /// Assertions that do not hold, by what they assert.
    pub(super) failed: Vec<String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(machine: &'a Root) -> Self {
        Self { known: Options::default(), machine, failed: Vec::new() }
    }

    /// Sets one to a value, in which those before it are known.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let value = self.expand(value);
        self.known.set(name, value);
    }

    /// The value with everything in it that is known.
    pub(super) fn expand(&mut self, value: &str) -> String {
        let text = self.with_variables(value);
        if text.len() > LONGEST { value.to_owned() } else { self.with_functions(&text) }
    }

    /// One pass: what a variable holds is not looked at again, but for the backslashes that keep
    /// an expression, of which each loses one.
    fn with_variables(&self, value: &str) -> String {
        let known =
            each(value, |name, escaped| if escaped { None } else { self.known.get(name).map(str::to_owned) });
        let mut text = String::new();
        let mut rest = known.as_str();
        while let Some(at) = rest.find("\\${") {
            let is_kept = named(&rest[at + 1..]).is_some();
            text.push_str(&rest[..at + usize::from(!is_kept)]);
            rest = &rest[at + 1..];
            // Not to be found again.
            let step = usize::from(is_kept) * 2;
            text.push_str(&rest[..step]);
            rest = &rest[step..];
        }
        text + rest
    }

    /// Functions from the innermost outwards.
    fn with_functions(&mut self, value: &str) -> String {
        let mut text = value.to_owned();
        // Where an expression begins, and whether a backslash is before it.
        let mut begun: Vec<(usize, bool)> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let here = &text.as_bytes()[at..];
            if here.starts_with(b"${") {
                begun.push((at, at > 0 && text.as_bytes()[at - 1] == b'\\'));
            } else if here[0] == b'}'
                && let Some((from, false)) = begun.pop()
                && let Some(call) = text[from..at].strip_prefix("${f:")
                && let Some(result) = self.call(call)
                && text.len() - (at - from) + result.len() <= LONGEST
            {
                text.replace_range(from..=at, &result);
                at = from + result.len();
                continue;
            }
            at += 1;
        }
        text
    }

    fn call(&mut self, call: &str) -> Option<String> {
        // A variable that is not set is text like any other; what a function would give is not
        // known.
        if call.contains("${f:") {
            return None;
        }
        let mut parts = arguments(call).into_iter();
        let name = parts.next()?;
        let arguments: Vec<String> = parts.collect();
        if let [what, left, right] = &arguments[..] {
            let fails = match name.as_str() {
                "assertion" => left != right,
                "assertion_non_equal" => left == right,
                _ => false,
            };
            if fails && !self.failed.contains(what) {
                self.failed.push(what.clone());
            }
        }
        functions::value(&name, &arguments, self.machine)
    }
}

/// The text with values in place of `${NAME}`; `of` has the name, and whether a backslash is before
/// it.
fn each(text: &str, of: impl Fn(&str, bool) -> Option<String>) -> String {
    let mut all = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let from = at + found;
        all.push_str(&text[at..from]);
        let name = named(&text[from..]);
        let value = name.and_then(|name| of(name, text[..from].ends_with('\\')));
        let end = from + name.map_or(2, |name| name.len() + 3);
        all.push_str(value.as_deref().unwrap_or(&text[from..end]));
        at = end;
        if all.len() > LONGEST {
            break;
        }
    }
    all + &text[at..]
}

/// The name in an expression at the beginning of a text.
fn named(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    Some(name).filter(|name| is_name(name))
}

/// An expression that is left in a value, the innermost.
pub(super) fn open(value: &str) -> Option<&str> {
    let from = value.find("${")?;
    let rest = value[from..].split_inclusive('}').next().unwrap_or_default();
    rest.rfind("${").map(|inner| &rest[inner..])
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Between colons, of which `\:` is none.
fn arguments(call: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut letters = call.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(':')) => {
                letters.next();
                all.last_mut().unwrap_or(&mut String::new()).push(':');
            }
            (':', _) => all.push(String::new()),
            _ => all.last_mut().unwrap_or(&mut String::new()).push(letter),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)], then: impl FnOnce(&mut Variables<'_>)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut variables = Variables::new(&root);
        pairs.iter().for_each(|(name, value)| variables.set(name, value));
        then(&mut variables);
    }

    #[test]
    fn variables_are_those_before_and_a_backslash_keeps_one() {
        variables(&[("a", "1"), ("b", "${a}${c}"), ("c", "3")], |all| {
            assert_eq!(all.expand("${a} ${b} ${c} ${d} \\${a} $ ${"), "1 1${c} 3 ${d} ${a} $ ${");
        });
    }

    #[test]
    fn functions_take_functions_and_what_would_run_a_program_stays() {
        variables(&[("cpus", "2-3")], |all| {
            assert_eq!(all.expand("${f:cpulist2hex:${f:cpulist_unpack:${cpus}}}"), "0000000c");
            let left = all.expand("x${f:strip:${f:exec:mktemp:-d}}");
            assert_eq!(open(&left), Some("${f:exec:mktemp:-d}"));
            assert_eq!(all.expand("${f:strip: a\\:b }"), "a:b");
            assert_eq!(open("no"), None);
        });
    }

    #[test]
    fn an_assertion_that_does_not_hold_is_named() {
        variables(&[("check", "\\\\${cpus}"), ("cpus", "${cpus}")], |all| {
            all.expand("${f:assertion_non_equal:cpus are set:${cpus}:${check}}");
            assert_eq!(all.failed, ["cpus are set"]);
        });
        variables(&[("check", "\\\\${cpus}"), ("cpus", "1")], |all| {
            all.expand("${f:assertion_non_equal:cpus are set:${cpus}:${check}}${f:assertion:same:1:2}");
            // Whether one holds in which something is not known is not known.
            all.expand("${f:assertion:not known:${f:exec:x}:2}");
            assert_eq!(all.failed, ["same"]);
        });
    }

    #[test]
    fn values_that_grow_without_end_stay() {
        let doubles: Vec<(String, String)> =
            (1..40).map(|n| (format!("v{n}"), format!("${{v{}}}${{v{}}}", n - 1, n - 1))).collect();
        let mut pairs = vec![("v0", "xx")];
        pairs.extend(doubles.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        variables(&pairs, |all| assert!(all.expand("${v39}").len() <= 2 * LONGEST));
    }
}

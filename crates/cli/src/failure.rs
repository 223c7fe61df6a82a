//! How the command reports an error: one sentence on stderr, or one JSON object; exit 1.

use model::Error;
use std::process::ExitCode;

/// Wrong usage is one sentence and exit 1, not clap's page and 2. Help and version are no failure.
pub(crate) fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    show(&anyhow::anyhow!(usage_sentence(error)), json)
}

/// What is wrong with a command line, in one sentence.
pub(crate) fn usage_sentence(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let sentence = rendered.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = sentence.trim_start_matches("error: ").split_whitespace().collect();
    format!("{}; see --help", words.join(" "))
}

/// Reports the error.
pub(crate) fn show(error: &anyhow::Error, json: bool) -> ExitCode {
    if json {
        eprintln!("{}", serde_json::json!({ "error": parts(error) }));
    } else {
        eprintln!("stillcore: {}", sentence(error));
    }
    ExitCode::from(1)
}

/// The chain of causes in one sentence. Many errors already end with their cause's words; those are
/// not said twice.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        before if before.ends_with(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// What, where and what was expected, as far as the error separates them.
fn parts(error: &anyhow::Error) -> serde_json::Value {
    let absent = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref::<Error>(), Some(Error::Absent { .. }))
    };
    let absent = error.chain().any(absent);
    let (what, place, expected) = error
        .chain()
        .find_map(|cause| {
            let known = cause.downcast_ref::<Error>().map(of_model);
            known.or_else(|| cause.downcast_ref::<ftrace::Error>().and_then(of_trace))
        })
        .unwrap_or_else(|| (sentence(error), None, None));
    let mut parts = serde_json::json!({ "what": what, "where": place, "expected": expected });
    if absent {
        parts["absent"] = true.into();
    }
    parts
}

type Parts = (String, Option<String>, Option<String>);

fn of_model(error: &Error) -> Parts {
    match error {
        Error::Invalid { place, what, expected } | Error::Absent { place, what, expected } => {
            (what.clone(), Some(place.clone()), Some(expected.clone()))
        }
        Error::Io { action, path, source } => {
            (format!("cannot {action}: {source}"), Some(path.display().to_string()), None)
        }
    }
}

fn of_trace(error: &ftrace::Error) -> Option<Parts> {
    match error {
        ftrace::Error::Io { path, action, source } => {
            Some((format!("cannot {action}: {source}"), Some(path.display().to_string()), None))
        }
        ftrace::Error::Malformed { path, offset, what, value, expected } => Some((
            format!("{what} is {value}"),
            Some(format!("{}: byte {offset}", path.display())),
            Some(expected.clone()),
        )),
        ftrace::Error::Truncated { path, offset, what, need } => {
            let expected = format!("{need} more bytes");
            Some((
                format!("ends inside {what}"),
                Some(format!("{}: byte {offset}", path.display())),
                Some(expected),
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cause_is_said_twice() {
        let full = std::io::Error::other("disk full");
        let error = anyhow::Error::from(Error::io("write", "/x".as_ref(), full)).context("nothing was kept");
        assert_eq!(sentence(&error), "nothing was kept: cannot write /x: disk full");
    }
}

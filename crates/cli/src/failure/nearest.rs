//! The known name that a wrong one most likely means.

/// How alike two names must be, 0 to 1; clap asks the same of verbs and options.
const ALIKE: f64 = 0.7;

/// The most similar of the known names, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|name| (strsim::jaro(word, name), name));
    let best = scored.filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name)
}

/// The known names that contain the word or a part of it, at most so many; parts are separated by
/// `-`, `_` and `.`.
pub(crate) fn containing<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let parts: Vec<_> = word.split(['-', '_', '.']).filter(|part| part.len() > 2).collect();
    known.into_iter().filter(|name| parts.iter().any(|part| name.contains(part))).take(most).collect()
}

/// `did you mean 'NAME'?`, for the nearest name.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|name| format!("did you mean '{name}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_nearest() {
        assert_eq!(nearest("skew_tik", ["sched_hrtick", "skew_tick", "nohz"]), Some("skew_tick"));
        assert_eq!(nearest("xyz", ["skew_tick", "nohz"]), None);
        assert_eq!(
            containing("tick", ["skew_tick", "nohz", "sched_hrtick"], 9),
            ["skew_tick", "sched_hrtick"]
        );
    }
}

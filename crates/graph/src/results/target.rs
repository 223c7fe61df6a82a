//! Target files of ros2-performance (`performance_target/*.json`): what a run must not exceed, and
//! whether it did.

use super::resources::Used;
use super::tracker::Total;
use model::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A target file. Keys other than limits are kept unchanged.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Target {
    /// The topology it is about.
    pub topology_file: Option<String>,
    /// The platform it was set for.
    pub platform: Option<String>,
    /// The command line of ros2-performance it was set for.
    pub additional_options: Option<String>,
    /// Limits of `cpu[%]` and `rss[KB]`.
    #[serde(default)]
    pub resources: BTreeMap<String, f64>,
    /// Limits of `late[%]`, `too_late[%]` and `lost[%]`.
    #[serde(default)]
    pub latency_total: BTreeMap<String, f64>,
}

/// One limit and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The quantity, as the target file names it.
    pub quantity: String,
    /// The most that is allowed.
    pub limit: f64,
    /// What was found.
    pub found: f64,
    /// Whether that is allowed.
    pub pass: bool,
}

/// Reads a target file.
pub fn read(path: &Path, text: &str) -> Result<Target, Error> {
    let expected = "a target file: topology_file, platform, resources, latency_total";
    let target: Target = serde_json::from_str(text).map_err(|error| {
        Error::invalid(format!("{}: line {}", path.display(), error.line()), error, expected)
    })?;
    let known = |key: &str| ["cpu[%]", "rss[KB]", "late[%]", "too_late[%]", "lost[%]"].contains(&key);
    let keys = target.resources.keys().chain(target.latency_total.keys());
    match keys.clone().find(|key| !known(key)) {
        Some(key) => Err(Error::invalid(
            path.display(),
            format!("a limit of {key}"),
            "cpu[%], rss[KB], late[%], too_late[%] or lost[%]",
        )),
        None if keys.count() == 0 => Err(Error::invalid(path.display(), "no limit", expected)),
        None => Ok(target),
    }
}

/// Compares a run with its limits. For resources, the largest of all rows counts; one row covers
/// all processes of a graph.
pub fn judge(target: &Target, total: &Total, used: &[Used]) -> Vec<Verdict> {
    let largest = |of: fn(&Used) -> f64| used.iter().map(of).fold(0.0, f64::max);
    let found = |quantity: &str| match quantity {
        "cpu[%]" => largest(|row| row.cpu_percent),
        "rss[KB]" => largest(|row| row.rss_kib as f64),
        "late[%]" => total.late_percent(),
        "too_late[%]" => total.too_late_percent(),
        _ => total.lost_percent(),
    };
    let limits = target.latency_total.iter().chain(&target.resources);
    limits
        .map(|(quantity, &limit)| {
            let found = found(quantity);
            Verdict { quantity: quantity.clone(), limit, found, pass: found <= limit }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = r#"{"topology_file": "robot.json", "platform": "board", "comments": "none",
        "additional_options": "-t 600", "resources": {"cpu[%]": 20, "rss[KB]": 20480},
        "latency_total": {"late[%]": 1.9, "too_late[%]": 0.1, "lost[%]": 0.0}}"#;

    #[test]
    fn each_limit_is_held_against_what_was_found() {
        let target = read(Path::new("robot_board.json"), TARGET).unwrap();
        let total = Total { received: 1_000, late: 19, too_late: 2, lost: 0, mean_us: 5.0 };
        let used = [
            Used { cpu_percent: 25.0, rss_kib: 100, ..Used::default() },
            Used { cpu_percent: 3.0, rss_kib: 20_480, ..Used::default() },
        ];
        let passed: Vec<_> =
            judge(&target, &total, &used).into_iter().map(|one| (one.quantity, one.pass)).collect();
        let passed: Vec<_> = passed.iter().map(|(name, pass)| (name.as_str(), *pass)).collect();
        assert_eq!(
            passed,
            [
                ("late[%]", true),
                ("lost[%]", true),
                ("too_late[%]", false),
                ("cpu[%]", false),
                ("rss[KB]", true)
            ]
        );
    }

    #[test]
    fn what_is_no_target_is_one_sentence() {
        let error = |text: &str| read(Path::new("t.json"), text).unwrap_err().to_string();
        assert!(error("{}").starts_with("t.json: no limit; expected a target file"));
        assert!(
            error("{\"resources\": {\"gpu[%]\": 3}}")
                .starts_with("t.json: a limit of gpu[%]; expected cpu[%]")
        );
        assert!(error("{\"resources\": 3}").starts_with("t.json: line 1: "));
    }
}

//! What a run was, by the command that made it: the heading of text and page, and whether it judges
//! anything.

use model::{Cpus, Run};

/// The verb as typed: `assess`, `measure ipi`. Of a command without one, what made every run before
/// there were others.
pub fn verb(run: &Run) -> String {
    let mut words = run.command.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-'));
    match words.next() {
        Some(first @ ("measure" | "graph" | "trace")) => {
            [first].into_iter().chain(words.next()).collect::<Vec<_>>().join(" ")
        }
        Some(verb) => verb.to_owned(),
        None => "assess".to_owned(),
    }
}

/// The verb that watches a program.
pub(crate) const WATCH: &str = "trace watch";

/// The verb that watches a program and makes a task model of it.
pub(crate) const MODEL: &str = "model";

/// The verb that watches CPUs.
pub(crate) const TOP: &str = "top";

/// The verb that keeps breaches.
pub(crate) const MONITOR: &str = "monitor";

/// Whether it only measured: no idle controls, no disturbance, nothing to compare. A watched
/// program by itself is no question of isolation.
pub(crate) fn is_measurement(run: &Run) -> bool {
    ["measure", "graph", WATCH, MODEL, TOP, MONITOR].iter().any(|first| verb(run).starts_with(first))
}

/// The heading of the page.
pub(crate) fn title(run: &Run) -> String {
    let on = cpus(&run.measured_cpus);
    match verb(run).as_str() {
        "measure wakeup" => format!("Wake-up latency on {on}"),
        "measure spin" => format!("Noise on {on}"),
        "measure ipi" => format!("Wake-ups from CPU to CPU among {on}"),
        "measure overheads" => format!("What the kernel\u{2019}s work costs on {on}"),
        "measure periodic" => "A periodic job and its surroundings".to_owned(),
        "measure taskset" => format!("A task set on {on}"),
        "graph run" => format!("A graph on {on}"),
        WATCH => format!("A program, watched on {on}"),
        MODEL => format!("The task model of a program on {on}"),
        TOP => format!("What ran on {on}"),
        MONITOR => format!("A breach on {on}"),
        "measure clocks" => "Clocks against one another".to_owned(),
        verb if verb.starts_with("measure") => format!("A measurement on {on}"),
        _ if run.measured_cpus.len() > 1 => format!("Are {on} still?"),
        _ => format!("Is {on} still?"),
    }
}

/// `CPU 3`, `CPUs 2-3`.
pub(crate) fn cpus(cpus: &Cpus) -> String {
    format!("{} {cpus}", if cpus.len() > 1 { "CPUs" } else { "CPU" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn of(command: &str) -> Run {
        let command = command.split(' ').map(str::to_owned).collect();
        Run { command, ..fixture::document().run }
    }

    #[test]
    fn the_verb_is_found_between_options() {
        for (command, expected, measured) in [
            ("stillcore assess --cpus 2-3", "assess", false),
            ("./stillcore --json assess", "assess", false),
            ("/usr/bin/stillcore measure ipi -n 50", "measure ipi", true),
            ("stillcore measure --json wakeup", "measure wakeup", true),
            ("stillcore measure", "measure", true),
            ("stillcore graph run cfs-hk", "graph run", true),
            ("stillcore trace watch --comm robot", "trace watch", true),
            ("stillcore model --out run -- ./robot", "model", true),
            ("stillcore top --cpus 2 -D 10s", "top", true),
            ("stillcore monitor start --over 1ms", "monitor", true),
            ("stillcore", "assess", false),
        ] {
            let run = of(command);
            assert_eq!((verb(&run).as_str(), is_measurement(&run)), (expected, measured), "{command}");
        }
    }

    #[test]
    fn the_title_says_what_was_measured() {
        assert_eq!(title(&of("stillcore assess")), "Are CPUs 2,3 still?");
        assert_eq!(title(&of("stillcore measure spin")), "Noise on CPUs 2,3");
    }
}

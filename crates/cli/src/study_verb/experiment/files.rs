//! The experiments that this program carries: `experiments/*.toml` of the repository, and the
//! numbers and statements of papers.

use study::experiment::{Claimed, Experiment, Fault, Published};
use study::papers::Statements;

/// Numbers of papers, by key.
const NUMBERS: &str = include_str!("../../../../../experiments/published.toml");

/// Name and text, in the order of the papers. A test walks the directory.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("ablation", include_str!("../../../../../experiments/ablation.toml")),
    ("rtss24-fig1", include_str!("../../../../../experiments/rtss24-fig1.toml")),
    ("rtss24-fig3", include_str!("../../../../../experiments/rtss24-fig3.toml")),
    ("rtss24-fig4", include_str!("../../../../../experiments/rtss24-fig4.toml")),
    ("rtss24-fig5", include_str!("../../../../../experiments/rtss24-fig5.toml")),
    ("rtss24-fig6a", include_str!("../../../../../experiments/rtss24-fig6a.toml")),
    ("rtss24-fig6b", include_str!("../../../../../experiments/rtss24-fig6b.toml")),
    ("rtss24-fig10", include_str!("../../../../../experiments/rtss24-fig10.toml")),
    ("rtss24-fig7", include_str!("../../../../../experiments/rtss24-fig7.toml")),
    ("rtss24-fig9", include_str!("../../../../../experiments/rtss24-fig9.toml")),
    ("rtss24-table1", include_str!("../../../../../experiments/rtss24-table1.toml")),
    ("rtss24-table2", include_str!("../../../../../experiments/rtss24-table2.toml")),
    ("rtss24-table3", include_str!("../../../../../experiments/rtss24-table3.toml")),
    ("rtss24-table4", include_str!("../../../../../experiments/rtss24-table4.toml")),
    ("rtss24-table5", include_str!("../../../../../experiments/rtss24-table5.toml")),
    ("rtss24-effects", include_str!("../../../../../experiments/rtss24-effects.toml")),
    ("rtss24-jitter", include_str!("../../../../../experiments/rtss24-jitter.toml")),
    ("rtss24-placement", include_str!("../../../../../experiments/rtss24-placement.toml")),
    ("rtss24-locks", include_str!("../../../../../experiments/rtss24-locks.toml")),
    ("rtss24-mechanisms", include_str!("../../../../../experiments/rtss24-mechanisms.toml")),
    ("rtss24-scheduling", include_str!("../../../../../experiments/rtss24-scheduling.toml")),
    ("rtss24-threads", include_str!("../../../../../experiments/rtss24-threads.toml")),
    ("replication-table1", include_str!("../../../../../experiments/replication-table1.toml")),
    ("replication-table2", include_str!("../../../../../experiments/replication-table2.toml")),
    ("replication-table3", include_str!("../../../../../experiments/replication-table3.toml")),
    ("replication-table4", include_str!("../../../../../experiments/replication-table4.toml")),
    ("replication-table5", include_str!("../../../../../experiments/replication-table5.toml")),
    ("replication-table6", include_str!("../../../../../experiments/replication-table6.toml")),
    ("replication-table8", include_str!("../../../../../experiments/replication-table8.toml")),
    ("replication-facts", include_str!("../../../../../experiments/replication-facts.toml")),
    ("replication-mechanisms", include_str!("../../../../../experiments/replication-mechanisms.toml")),
    ("replication-shares", include_str!("../../../../../experiments/replication-shares.toml")),
    ("access20-table1", include_str!("../../../../../experiments/access20-table1.toml")),
    ("access20-table2", include_str!("../../../../../experiments/access20-table2.toml")),
    ("access20-table3", include_str!("../../../../../experiments/access20-table3.toml")),
    ("access20-table4", include_str!("../../../../../experiments/access20-table4.toml")),
    ("access20-table5", include_str!("../../../../../experiments/access20-table5.toml")),
    ("access20-fig5", include_str!("../../../../../experiments/access20-fig5.toml")),
    ("access20-table7-8", include_str!("../../../../../experiments/access20-table7-8.toml")),
    ("access20-cpus", include_str!("../../../../../experiments/access20-cpus.toml")),
    ("access20-cstate", include_str!("../../../../../experiments/access20-cstate.toml")),
    ("access20-debug", include_str!("../../../../../experiments/access20-debug.toml")),
    ("access20-effects", include_str!("../../../../../experiments/access20-effects.toml")),
    ("access20-periodic", include_str!("../../../../../experiments/access20-periodic.toml")),
    ("ospert13-disk", include_str!("../../../../../experiments/ospert13-disk.toml")),
    ("ospert13-fig3-5", include_str!("../../../../../experiments/ospert13-fig3-5.toml")),
    ("ospert13-fig6", include_str!("../../../../../experiments/ospert13-fig6.toml")),
    ("ospert13-policies", include_str!("../../../../../experiments/ospert13-policies.toml")),
    ("ospert13-timer-slack", include_str!("../../../../../experiments/ospert13-timer-slack.toml")),
    ("ospert13-equals", include_str!("../../../../../experiments/ospert13-equals.toml")),
    ("ospert13-ipi", include_str!("../../../../../experiments/ospert13-ipi.toml")),
    ("ospert13-lower-tasks", include_str!("../../../../../experiments/ospert13-lower-tasks.toml")),
    ("ospert13-overheads", include_str!("../../../../../experiments/ospert13-overheads.toml")),
    ("ospert13-setup", include_str!("../../../../../experiments/ospert13-setup.toml")),
    ("ospert13-softirq", include_str!("../../../../../experiments/ospert13-softirq.toml")),
    ("ospert13-tasks", include_str!("../../../../../experiments/ospert13-tasks.toml")),
    ("erts22-d", include_str!("../../../../../experiments/erts22-d.toml")),
    ("erts22-fig10-12", include_str!("../../../../../experiments/erts22-fig10-12.toml")),
    ("erts22-fig3", include_str!("../../../../../experiments/erts22-fig3.toml")),
    ("erts22-fig4-5", include_str!("../../../../../experiments/erts22-fig4-5.toml")),
    ("erts22-fig6-9", include_str!("../../../../../experiments/erts22-fig6-9.toml")),
    ("erts22-cpus", include_str!("../../../../../experiments/erts22-cpus.toml")),
    ("erts22-deadline", include_str!("../../../../../experiments/erts22-deadline.toml")),
    ("erts22-kernel", include_str!("../../../../../experiments/erts22-kernel.toml")),
    ("erts22-memory", include_str!("../../../../../experiments/erts22-memory.toml")),
    ("erts22-pipe", include_str!("../../../../../experiments/erts22-pipe.toml")),
    ("erts22-planted", include_str!("../../../../../experiments/erts22-planted.toml")),
    ("erts22-work", include_str!("../../../../../experiments/erts22-work.toml")),
];

/// The statements carried by the program, a file a paper.
const STATEMENTS: [&str; 5] = [
    include_str!("../../../../../experiments/statements/rtss24.toml"),
    include_str!("../../../../../experiments/statements/replication.toml"),
    include_str!("../../../../../experiments/statements/access20.toml"),
    include_str!("../../../../../experiments/statements/ospert13.toml"),
    include_str!("../../../../../experiments/statements/erts22.toml"),
];

/// The published numbers.
pub(crate) fn published() -> anyhow::Result<Published> {
    Ok(Published::from_toml(NUMBERS)?)
}

/// The statements that the program carries.
pub(crate) fn statements() -> anyhow::Result<Statements> {
    let published = published()?;
    let mut all = Vec::new();
    for text in STATEMENTS {
        all.extend(Statements::from_toml(text, &published)?.all);
    }
    Ok(Statements { all })
}

/// A statement in words: the paper's with its number, or ours.
pub(super) fn words(claim: &Claimed) -> String {
    let Some(id) = &claim.statement else { return format!("ours: {}", claim.text) };
    let listed = statements().ok();
    let quote = listed.as_ref().and_then(|all| all.get(id)).map_or(&claim.text, |one| &one.quote);
    format!("{id} \u{201c}{quote}\u{201d}")
}

/// The text of the experiment of this name.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    crate::carried::text(FILES, name)
}

/// Reads an experiment; keys are those of the published numbers.
pub(crate) fn read(text: &str) -> anyhow::Result<Result<Experiment, Fault>> {
    Ok(Experiment::from_toml(text, &published()?))
}

/// Name and title of each.
pub(crate) fn titles() -> anyhow::Result<Vec<(String, String)>> {
    let mut titles = Vec::new();
    for (name, text) in FILES {
        let experiment = read(text)?.map_err(anyhow::Error::new)?;
        titles.push(((*name).to_owned(), format!("{} ({})", experiment.title, experiment.source)));
    }
    Ok(titles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_sound_carried_and_called_what_it_is() {
        crate::carried::assert_whole(FILES, |text| text.contains(study::experiment::EXPERIMENT_SCHEMA));
        for (name, text) in FILES {
            let experiment = read(text).unwrap().unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(experiment.name.get_ref(), name);
        }
    }

    /// The words that a cell calls this program with are words that it takes.
    #[test]
    fn every_command_of_every_cell_is_one_that_the_program_takes() {
        use study::experiment::Plan;
        crate::calls::check_by(crate::what_is_wrong);
        for (name, text) in FILES {
            let experiment = read(text).unwrap().unwrap();
            let plan = Plan::of(&experiment, &experiment.machine.kernels, 1, 0.01).unwrap();
            super::super::spelt::check(&experiment, &plan.cells, 0.01)
                .unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

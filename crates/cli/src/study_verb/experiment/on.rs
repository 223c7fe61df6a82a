//! On what an experiment runs: guests of the lab, this machine as it stands, or machines of an
//! inventory; and the kernels that are a factor there.

use super::super::RunArgs;
use super::ground;
use model::Error;
use study::experiment::{Experiment, Ground, Part, kernel_name};

/// Where cells run.
pub(super) struct On {
    /// In guests.
    pub(super) lab: bool,
    /// Levels of the factor `kernel`: those of the lab; else what this machine runs, and what it
    /// ran when the directory got cells before. None where the file names none, or where nobody
    /// knows yet.
    pub(super) kernels: Vec<String>,
    /// This machine, where cells run on it.
    pub(super) ground: Option<Ground>,
}

impl On {
    /// Resolved from the call, the file, and what the directory says of itself.
    pub(super) fn of(
        args: &RunArgs,
        experiment: &Experiment,
        present: Option<&Part>,
    ) -> anyhow::Result<Self> {
        let declared = &experiment.machine.kernels;
        let as_it_stands = args.here || args.hosts.is_some();
        match &args.lab {
            _ if args.hosts.is_some() => Ok(Self { lab: false, kernels: Vec::new(), ground: None }),
            Some(named) if !named.is_empty() => {
                crate::lab_verb::known(named)?;
                let mut kernels = named.clone();
                // Where one thing is concluded from all kernels, more of them may come later.
                if let Some(part) = present.filter(|_| experiment.conclusion.is_some()) {
                    kernels.extend(part.kernels.iter().filter(|one| !named.contains(one)).cloned());
                }
                Ok(Self { lab: true, kernels, ground: None })
            }
            Some(_) if declared.is_empty() => Err(Error::invalid(
                "--lab",
                "no kernels, and the file names none",
                "kernels, such as --lab 6.1,6.1-rt",
            )
            .into()),
            _ if !as_it_stands && !declared.is_empty() => {
                Ok(Self { lab: true, kernels: declared.clone(), ground: None })
            }
            _ => {
                let before = present.and_then(|part| part.cpus.as_deref()).map(str::parse).transpose()?;
                let ground = ground::read(args.cpus.as_ref().or(before.as_ref()))?;
                let mut kernels = Vec::new();
                if !declared.is_empty() && !args.any_kernel {
                    let before = present.filter(|part| part.on_machines).map(|part| part.kernels.clone());
                    kernels = before.unwrap_or_default();
                    match &args.boots {
                        Some(boots) => kernels.extend(boots.kernels.iter().cloned()),
                        None => kernels.push(kernel_name(&ground.machine)),
                    }
                    kernels.sort();
                    kernels.dedup();
                }
                Ok(Self { lab: false, kernels, ground: Some(ground) })
            }
        }
    }
}

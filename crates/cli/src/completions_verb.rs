//! `stillcore completions`: the script by which a shell completes this command, from the command
//! line's own definition.

use crate::calls;
use clap::{Args, ValueEnum};
use clap_complete::{Shell, generate};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to write the script for.
    #[arg(value_enum)]
    shell: Target,
}

/// The shells.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Target {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let shell = match args.shell {
        Target::Bash => Shell::Bash,
        Target::Zsh => Shell::Zsh,
        Target::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut calls::command(), "stillcore", &mut script);
    print!("{}", String::from_utf8(script)?);
    Ok(0)
}

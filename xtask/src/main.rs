//! The chores of the workspace as one program, so that developers, `make` and CI run exactly the same steps.
//! `cargo xtask tidy` checks the conventions of the house; `cargo xtask test` is the driver behind `make test`.
#![forbid(unsafe_code)]

mod elf;
mod hosts;
mod output;
mod python;
mod release;
mod repo;
mod steps;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use output::Output;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The chores of the stillcore workspace")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check crate arrows, file headers and lengths, the catalogue, the changelog and the links of the docs.
    Tidy,
    /// Run every test step and print how long each took.
    Test(test::Options),
    /// Run the slow tier, or those parts of it that a change touches.
    TestAll(test::all::Options),
    /// Install Ansible for the tests of `study run --hosts`, and check the files of deploy/.
    Hosts,
    /// Check the oldest compiler, licences and sources, and the size of the static binaries.
    CheckRelease,
    /// Build the static binaries of both architectures into dist/.
    Dist,
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Tidy => tidy::run(&repo::root(), &mut Output::Terminal),
        Chore::Test(options) => test::run_tests(&repo::root(), &options),
        Chore::TestAll(options) => test::all::run_parts(&repo::root(), &options),
        Chore::Hosts => hosts::prepare(&repo::root(), &mut Output::Terminal).map(|()| true),
        Chore::CheckRelease => Ok(release::check(&repo::root())),
        Chore::Dist => release::dist(&repo::root()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

//! The chores of the workspace as one program, so that developers, `make` and CI run exactly the
//! same steps. `cargo xtask tidy` checks the conventions of the house; `cargo xtask test` is the
//! driver behind `make test`.
#![forbid(unsafe_code)]

mod book;
mod docs;
mod hosts;
mod jobs;
mod output;
mod packages;
mod place;
mod python;
mod release;
mod repo;
mod results;
mod shipped;
mod steps;
mod test;
mod texts;
mod tidy;
mod tokens;

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
    /// Check crate arrows, file headers and lengths, the catalogue, the changelog and the links of
    /// the docs.
    Tidy,
    /// Run every test step and print how long each took.
    Test(test::Options),
    /// Run the slow tier, or those parts of it that a change touches.
    TestAll(test::all::Options),
    /// Install Ansible for the tests of `study run --hosts`, and check the files of deploy/.
    Hosts,
    /// Check the oldest compiler, licences and sources, and the size of the static binaries.
    CheckRelease,
    /// Build the static programs and their packages into dist/; stored results must be of them.
    Dist(packages::Options),
    /// Measure one thing beside its peers; the result goes to docs/results/NAME.json.
    Bench(jobs::Options),
    /// Run one matrix of guests; the result goes to docs/results/NAME.json.
    Lab(jobs::Options),
    /// Run one study; the result goes to docs/results/NAME.json.
    Study(jobs::Options),
    /// Write the measured numbers of every page anew, from docs/results.
    Docs,
    /// Build the pages of docs/ as a book with search, into target/book.
    Book,
    /// Print doc comments, help texts and error texts drawn at random, for a reader to restate.
    Texts(texts::Options),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Tidy => tidy::run(&repo::root(), &mut Output::Terminal),
        Chore::Test(options) => test::run_tests(&repo::root(), &options),
        Chore::TestAll(options) => test::all::run_parts(&repo::root(), &options),
        Chore::Hosts => hosts::prepare(&repo::root(), &mut Output::Terminal).map(|()| true),
        Chore::CheckRelease => Ok(release::check(&repo::root())),
        Chore::Dist(options) => packages::dist(&repo::root(), &options),
        Chore::Bench(options) => jobs::run(&repo::root(), jobs::Kind::Bench, &options),
        Chore::Lab(options) => jobs::run(&repo::root(), jobs::Kind::Lab, &options),
        Chore::Study(options) => jobs::run(&repo::root(), jobs::Kind::Study, &options),
        Chore::Docs => docs::rewrite(&repo::root()),
        Chore::Book => book::build(&repo::root()),
        Chore::Texts(options) => texts::run(&repo::root(), &options),
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

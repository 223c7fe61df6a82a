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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    /// Lines of code and words in backquotes: each chore is one, each target of make is there.
    #[test]
    fn chores_and_targets_of_the_pages_are_there() {
        let repo = repo::Repo::read(&repo::root()).unwrap();
        let makefile = repo.files["Makefile"].clone().unwrap();
        let is_target = |word: &str| {
            makefile.lines().any(|line| {
                line.split_once(':').is_some_and(|(targets, _)| targets.split(' ').any(|one| one == word))
            })
        };
        let is_page = |path: &str| {
            matches!(path, "README.md" | "CONTRIBUTING.md" | "ARCHITECTURE.md")
                || path.starts_with("docs/") && docs::is_page(path)
        };
        let mut wrong = Vec::new();
        let mut count = 0;
        for (path, text) in repo.texts(is_page) {
            let code = text.lines().filter_map(|line| line.strip_prefix("    "));
            // A stored result says what was typed for it then.
            let sentences = text.lines().filter(|line| !line.starts_with("Measured "));
            let inline = sentences.flat_map(|line| line.split('`').skip(1).step_by(2));
            for line in code.chain(inline) {
                let line = line.split(" #").next().unwrap_or_default().trim();
                let line = line.strip_prefix("STRICT=0 ").unwrap_or(line);
                if let Some(words) =
                    line.strip_prefix("cargo xtask").filter(|rest| !rest.contains(['|', '[']))
                {
                    let refused =
                        Args::try_parse_from(["cargo xtask"].into_iter().chain(words.split_whitespace()))
                            .err()
                            .filter(|error| error.use_stderr() && !words.is_empty());
                    wrong.extend(refused.map(|error| format!("{path}: {line}: {error}")));
                    count += 1;
                } else if let Some(words) = line.strip_prefix("make ").filter(|rest| !rest.contains("BR2_")) {
                    let targets = words.split(' ').take_while(|word| !word.contains('='));
                    wrong.extend(
                        targets
                            .filter(|word| !is_target(word))
                            .map(|word| format!("{path}: {line}: no target {word}")),
                    );
                    count += 1;
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count > 40, "{count}");
    }
}

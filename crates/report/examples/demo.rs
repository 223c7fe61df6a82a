//! Renders a made-up run, to look at:
//! `cargo run -p stillcore-report --example demo -- [html|text|screen|json] [run|still|snapshots|wide|ipi|overheads|periodic|taskset|clocks|graph|compare|study|statements|exposure|matrix] > FILE`.

#[path = "../src/fixture/mod.rs"]
mod fixture;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let format = args.next().unwrap_or_else(|| "html".to_owned());
    let of = args.next();
    if let Some(page) = of.as_deref().and_then(page_of_no_run) {
        return print(page);
    }
    let document = match of.as_deref() {
        Some("still") => fixture::still(),
        Some("snapshots") => fixture::snapshots(),
        Some(verb) if fixture::MEASURED.contains(&verb) => fixture::measurement(verb),
        Some("wide") => fixture::wide(&(2..66).collect::<Vec<_>>()),
        _ => fixture::document(),
    };
    let rendered = match format.as_str() {
        "text" => Ok(report::summary(&document, options())),
        "screen" => Ok(report::screen(&document, options())),
        "json" => report::assess_json(&document),
        _ => report::page(&document),
    };
    print(rendered)
}

/// As wide as `COLUMNS` says.
fn options() -> report::TextOptions {
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let defaults = report::TextOptions::default();
    report::TextOptions { width: width.unwrap_or(defaults.width), ..defaults }
}

/// Pages that are not of one run have no other form here.
fn page_of_no_run(name: &str) -> Option<Result<String, report::Error>> {
    Some(match name {
        "compare" => report::comparison_page(&fixture::pages::comparison(), &[], None),
        "study" => report::study_page(&fixture::pages::study()),
        "statements" => report::study_page(&fixture::pages::statements()),
        "exposure" => report::exposure_page(&fixture::pages::exposure()),
        "matrix" => report::matrix_page(&fixture::pages::matrix()),
        _ => return None,
    })
}

fn print(rendered: Result<String, report::Error>) -> ExitCode {
    match rendered {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

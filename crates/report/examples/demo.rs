//! Renders a made-up run, to look at:
//! `cargo run -p stillcore-report --example demo -- [html|text|screen|json] [run|still|snapshots|wide|ipi|overheads|periodic|taskset|clocks|graph] > FILE`.

#[path = "../src/fixture/mod.rs"]
mod fixture;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let format = args.next().unwrap_or_else(|| "html".to_owned());
    let document = match args.next().as_deref() {
        Some("still") => fixture::still(),
        Some("snapshots") => fixture::snapshots(),
        Some(verb) if fixture::MEASURED.contains(&verb) => fixture::measurement(verb),
        Some("wide") => fixture::wide(&(2..66).collect::<Vec<_>>()),
        _ => fixture::document(),
    };
    let rendered = match format.as_str() {
        "text" => Ok(report::summary(&document, report::TextOptions::default())),
        "screen" => Ok(report::screen(&document, report::TextOptions::default())),
        "json" => report::assess_json(&document),
        _ => report::page(&document),
    };
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

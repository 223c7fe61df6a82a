//! Opens the report in a real browser, with scripts on and off, and looks at it: headings,
//! sections, charts with a size, numbers, no line on the console, no request. Pictures are left in
//! `target/report-screens/`.

mod page;
mod plots;
mod webdriver;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{pages, programs};
use page::{Page, picture};
use webdriver::{Browser, have_browser};

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 900;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The report of a stored run, made by the command that users call, from a copy: the command writes
/// into its run.
fn report(folder: &Path, stored: &str) -> PathBuf {
    let run = folder.join("run");
    copy(&root().join("fixtures/runs").join(stored), &run);
    let file = folder.join("report.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let made = command.arg("report").arg(&run).arg("--html").arg(&file).output().unwrap();
    // 2 is a finding about the machine that was measured; 1 is an error.
    let code = made.status.code();
    assert!(matches!(code, Some(0 | 2)), "{code:?}: {}", String::from_utf8_lossy(&made.stderr));
    file
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Looks at one page and stores its picture.
fn look(file: &Path, scripts: bool, picture_name: &str) -> Page {
    let browser = Browser::start(scripts, WIDTH, HEIGHT);
    let page = Page::read(&browser, file);
    store(&browser, picture_name);
    page
}

fn store(browser: &Browser, picture_name: &str) {
    let folder = root().join("target/report-screens");
    fs::create_dir_all(&folder).unwrap();
    let png = picture(browser);
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "not a picture");
    fs::write(folder.join(picture_name), png).unwrap();
}

#[test]
fn the_report_reads_well_with_scripts_and_without() {
    if !have_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = report(folder.path(), "small");
    let with = look(&file, true, "report-scripts-on.png");
    assert_eq!(with.complaints(), [] as [&str; 0]);
    let without = look(&file, false, "report-scripts-off.png");
    assert_eq!(without.complaints(), [] as [&str; 0]);

    assert!(with.headings.iter().filter(|(level, _)| *level == 2).count() >= 3, "{:?}", with.headings);
    assert_eq!(with.headings, without.headings, "scripts add or remove a heading");
    assert_eq!(with.charts.len(), without.charts.len(), "scripts add or remove a chart");
    assert_eq!(with.sections.len(), without.sections.len(), "scripts add or remove a section");
}

/// The runs of `stillcore measure` that are stored.
const MEASURED: [&str; 5] = ["ipi", "overheads", "periodic", "taskset", "clocks"];

#[test]
fn the_report_of_each_measurement_reads_well_on_a_desk_and_in_a_hand() {
    if !have_browser() {
        return;
    }
    let folders = MEASURED.map(|verb| (verb, tempfile::tempdir().unwrap()));
    let files =
        folders.iter().map(|(verb, folder)| (*verb, report(folder.path(), &format!("measure/{verb}"))));
    let files: Vec<_> = files.collect();
    let mut seen: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for scripts in [true, false] {
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        for (verb, file) in &files {
            assert!(fs::metadata(file).unwrap().len() < 500_000, "{verb} is too large");
            // Each width and each scheme, with scripts and without, in half of the combinations.
            for (width, dark) in [(WIDTH, !scripts), (400, scripts)] {
                let name = format!("{verb} {width} {}", if dark { "dark" } else { "light" });
                browser.emulate(width, HEIGHT, dark);
                let page = Page::read(&browser, file);
                store(&browser, &format!("measure-{}.png", name.replace(' ', "-")));
                assert_eq!(page.complaints(), [] as [&str; 0], "{name}");
                assert!((page.widths.1 - f64::from(width)).abs() < 30.0, "{name}: {:?}", page.widths);
                seen.entry(verb).or_default().push((page.headings, page.charts.len(), page.sections.len()));
            }
        }
    }
    for (verb, pages) in seen {
        assert!(
            pages.windows(2).all(|two| two[0] == two[1]),
            "{verb} differs by scripts or width: {pages:?}"
        );
    }
}

/// The page with every section unfolded.
fn unfolded(file: &Path) -> PathBuf {
    let text =
        fs::read_to_string(file).unwrap().replace("<details class=\"part\"", "<details class=\"part\" open");
    let open = file.with_extension("open.html");
    fs::write(&open, text).unwrap();
    open
}

#[test]
fn the_opening_of_every_report_is_short_and_no_label_lies_over_another() {
    if !have_browser() {
        return;
    }
    let folders: Vec<_> = ["small"]
        .into_iter()
        .map(str::to_owned)
        .chain(MEASURED.map(|verb| format!("measure/{verb}")))
        .map(|run| (run, tempfile::tempdir().unwrap()))
        .collect();
    let browser = Browser::start(true, WIDTH, HEIGHT);
    for (run, folder) in &folders {
        let file = report(folder.path(), run);
        // Two screens of a desk, four of a hand.
        for (width, height, screens) in [(1400, 900, 2.0), (400, 800, 4.0)] {
            browser.emulate(width, height, false);
            let page = Page::read(&browser, &file);
            store(&browser, &format!("opening-{}-{width}.png", run.replace('/', "-")));
            assert_eq!(page.complaints(), [] as [&str; 0], "{run} {width}");
            let most = screens * f64::from(height);
            assert!(
                page.opening_end > 200.0 && page.opening_end <= most,
                "{run} {width}: {}",
                page.opening_end
            );
        }
        for width in [1400, 400] {
            browser.emulate(width, 900, false);
            let page = Page::read(&browser, &unfolded(&file));
            store(&browser, &format!("unfolded-{}-{width}.png", run.replace('/', "-")));
            assert_eq!(page.complaints(), [] as [&str; 0], "{run}, unfolded");
            assert!(width > 400 || page.wide_tables.is_empty(), "{run}: {:?}", page.wide_tables);
        }
    }
}

/// Made-up pages that are not of one run, each with its name.
fn pages_of_no_run(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let next = pages::study().next;
    let made = [
        ("compare", report::comparison_page(&pages::comparison(), &[], next)),
        ("study", report::study_page(&pages::study())),
        ("statements", report::study_page(&pages::statements())),
        ("exposure", report::exposure_page(&pages::exposure())),
        ("matrix", report::matrix_page(&pages::matrix())),
    ];
    let stored = made.map(|(name, page)| {
        let file = folder.join(format!("{name}.html"));
        fs::write(&file, page.unwrap()).unwrap();
        (name, file)
    });
    stored.to_vec()
}

#[test]
fn pages_that_are_not_of_one_run_are_as_short_and_as_clear() {
    if !have_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = pages_of_no_run(folder.path());
    for scripts in [true, false] {
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        for (name, file) in &files {
            // Two screens of a desk, four of a hand; each scheme with scripts and without.
            for (width, dark, most) in [(1400, !scripts, 1800.0), (400, scripts, 3200.0)] {
                browser.emulate(width, HEIGHT, dark);
                let page = Page::read(&browser, file);
                store(&browser, &format!("page-{name}-{width}-{}.png", if dark { "dark" } else { "light" }));
                assert_eq!(page.complaints(), [] as [&str; 0], "{name} {width}");
                assert!(
                    page.opening_end > 200.0 && page.opening_end <= most,
                    "{name} {width}: {}",
                    page.opening_end
                );
                assert_eq!(page.charts.len(), 1, "one plot is laid out: {name} {width}");
                let open = Page::read(&browser, &unfolded(file));
                store(&browser, &format!("page-{name}-{width}-unfolded.png"));
                assert_eq!(open.complaints(), [] as [&str; 0], "{name} {width}, unfolded");
                assert!(width > 400 || open.wide_tables.is_empty(), "{name}: {:?}", open.wide_tables);
            }
        }
    }
}

#[test]
fn the_page_of_a_model_opens_with_its_jobs_and_reads_well_on_a_desk_and_in_a_hand() {
    if !have_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = [("model", false), ("refuted", true)].map(|(name, refuted)| {
        let file = folder.path().join(format!("{name}.html"));
        fs::write(&file, programs::program_page(refuted).unwrap()).unwrap();
        (name, file)
    });
    for scripts in [true, false] {
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        for (name, file) in &files {
            // Two screens of a desk, four of a hand; each scheme with scripts and without.
            for (width, dark, most) in [(1400, !scripts, 1800.0), (400, scripts, 3200.0)] {
                browser.emulate(width, HEIGHT, dark);
                let page = Page::read(&browser, file);
                store(&browser, &format!("page-{name}-{width}-{}.png", if dark { "dark" } else { "light" }));
                assert_eq!(page.complaints(), [] as [&str; 0], "{name} {width}");
                let end = page.opening_end;
                assert!(end > 200.0 && end <= most, "{name} {width}: {end}");
                // Around the job, responses, a chain, what if: as wide as the window lets them.
                assert_eq!(page.charts.len(), 4, "{name} {width}");
                assert!(page.charts.iter().all(|(wide, _)| *wide <= f64::from(width)), "{:?}", page.charts);
                let open = Page::read(&browser, &unfolded(file));
                store(&browser, &format!("page-{name}-{width}-unfolded.png"));
                assert_eq!(open.complaints(), [] as [&str; 0], "{name} {width}, unfolded");
                assert!(width > 400 || open.wide_tables.is_empty(), "{name}: {:?}", open.wide_tables);
            }
        }
    }
}

/// A name in a run that tries to break out of the page.
const HOSTILE: &str =
    "\"'><script>document.title='owned'</script><img src=http://example.invalid/x>{{ 7*7 }}\u{202e}";

/// Changes a JSON file of a run.
fn edit(file: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

/// The report of the stored assessment with changes to `run.json` and `machine-before.json`.
fn changed(folder: &Path, run: impl FnOnce(&mut serde_json::Value), names: bool) -> PathBuf {
    let dir = folder.join("changed");
    copy(&root().join("fixtures/runs/small"), &dir);
    edit(&dir.join("run.json"), run);
    let stored: serde_json::Value = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
    if stored["probes"].as_array().is_some_and(Vec::is_empty) {
        // Samples that no record names are those of a window that was cut off.
        fs::remove_dir_all(dir.join("samples")).unwrap();
    }
    if names {
        edit(&dir.join("machine-before.json"), |snapshot| {
            let machine = &mut snapshot["machine"];
            machine["kernel"]["release"] = HOSTILE.into();
            machine["cpu_model"] = HOSTILE.into();
            machine["cmdline"] = HOSTILE.into();
        });
        edit(&dir.join("findings.json"), |findings| {
            for finding in findings.as_array_mut().unwrap().iter_mut().take(3) {
                finding["title"] = HOSTILE.into();
                finding["have"] = HOSTILE.into();
            }
        });
    }
    let file = folder.join("report.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let made = command.arg("report").arg(&dir).arg("--html").arg(&file).output().unwrap();
    let code = made.status.code();
    assert!(matches!(code, Some(0 | 2)), "{code:?}: {}", String::from_utf8_lossy(&made.stderr));
    file
}

/// No samples, no trace.
fn without_samples(run: &mut serde_json::Value) {
    run["complete"] = false.into();
    run["incomplete_reason"] = "interrupted".into();
    run["probes"] = serde_json::json!([]);
    run["windows"] = serde_json::json!([]);
    run["trace"] = serde_json::Value::Null;
}

#[test]
fn hostile_names_zero_samples_and_only_losses_read_well_at_three_widths() {
    if !have_browser() {
        return;
    }
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let hostile = |run: &mut serde_json::Value| run["command"].as_array_mut().unwrap().push(HOSTILE.into());
    let losses = |run: &mut serde_json::Value| {
        without_samples(run);
        run["losses"]["missed_releases"] = 12_345.into();
        run["losses"]["ring_samples"] = 678.into();
    };
    let files = [
        ("hostile", changed(folders[0].path(), hostile, true)),
        ("zero", changed(folders[1].path(), without_samples, false)),
        ("losses", changed(folders[2].path(), losses, false)),
    ];
    for scripts in [true, false] {
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        for (name, file) in &files {
            for (width, dark) in [(390, scripts), (800, !scripts), (1400, scripts)] {
                browser.emulate(width, HEIGHT, dark);
                let page = Page::read(&browser, file);
                store(&browser, &format!("report-{name}-{width}-{}.png", if scripts { "on" } else { "off" }));
                // Braces of a hostile name are shown as they are; without samples there is nothing
                // to draw.
                let complaints = page.complaints().into_iter().filter(|line| {
                    let braces = *name == "hostile"
                        && ["{{", "}}"].iter().any(|two| *line == format!("the text {two:?}"));
                    !braces && (*name == "hostile" || line != "no chart")
                });
                assert_eq!(complaints.collect::<Vec<_>>(), [] as [&str; 0], "{name} {width}");
                let shown = |text: &str| assert!(page.text.contains(text), "{name} {width}: {text}");
                match *name {
                    "hostile" => shown("<script>document.title='owned'</script>"),
                    "losses" => ["12,345", "678", "interrupted"].iter().for_each(|text| shown(text)),
                    _ => shown("interrupted"),
                }
            }
        }
    }
}

#[test]
fn a_comparison_reads_well_at_three_widths() {
    if !have_browser() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let runs = ["a", "b"].map(|name| folder.path().join(name));
    runs.iter().for_each(|run| copy(&root().join("fixtures/runs/small"), run));
    let file = folder.path().join("comparison.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    let made = command.arg("compare").args(&runs).arg("--anyway").arg("--html").arg(&file).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for scripts in [true, false] {
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        for width in [390, 800, 1400] {
            browser.emulate(width, HEIGHT, scripts);
            let page = Page::read(&browser, &file);
            store(&browser, &format!("comparison-{width}-{}.png", if scripts { "on" } else { "off" }));
            assert_eq!(page.complaints(), [] as [&str; 0], "{width}");
        }
    }
}

/// A page that has all a report needs; `more` goes into its section.
fn written(folder: &Path, more: &str) -> PathBuf {
    let file = folder.join("page.html");
    let text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>off</title><script>document.title='on'</script>\
         <h1>Title</h1><section><h2>Numbers</h2><p>42 ns</p>\
         <svg width=60 height=30><rect width=60 height=30 /></svg>{more}</section></html>"
    );
    fs::write(&file, text).unwrap();
    file
}

fn complaints(scripts: bool, more: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::start(scripts, WIDTH, HEIGHT);
    Page::read(&browser, &written(folder.path(), more)).complaints()
}

#[test]
fn scripts_are_really_on_and_really_off() {
    if !have_browser() {
        return;
    }
    for (scripts, title) in [(true, "on"), (false, "off")] {
        let folder = tempfile::tempdir().unwrap();
        let browser = Browser::start(scripts, WIDTH, HEIGHT);
        let page = Page::read(&browser, &written(folder.path(), ""));
        assert_eq!(page.complaints(), [] as [&str; 0]);
        let targets = browser.devtools("Target.getTargets", &serde_json::json!({}));
        let pages = targets["targetInfos"].as_array().unwrap();
        let titles: Vec<_> = pages.iter().filter(|t| t["type"] == "page").map(|t| &t["title"]).collect();
        assert_eq!(titles, [title]);
    }
}

#[test]
fn each_fault_of_a_page_is_seen() {
    if !have_browser() {
        return;
    }
    for (fault, complaint) in [
        ("<script>console.error('broken')</script>", "console: "),
        ("<script>no_such_function()</script>", "console: "),
        ("<img src=\"http://example.invalid/x.png\">", "request: http://example.invalid/x.png"),
        ("<svg width=0 height=0></svg>", "a chart of 0 x 0"),
        ("<section style=\"display:none\"></section>", "a section 0 high"),
        ("<h1>Second</h1>", "2 first-level headings; expected one"),
        ("<h3> </h3>", "a heading of level 3 without text"),
        ("<p>median NaN ns</p>", "the text \"NaN\""),
        ("<p>{{ median }}</p>", "the text \"{{\""),
        ("<div style=\"width:3000px\">.</div>", "content "),
        ("<svg width=90 height=30><text y=20>one</text><text x=9 y=20>two</text></svg>", "labels over"),
    ] {
        let found = complaints(true, fault);
        assert!(found.iter().any(|line| line.starts_with(complaint)), "{fault}: {found:?}");
    }
}

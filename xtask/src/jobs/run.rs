//! One run of a job: packages, the program, the commands, then their rows as a stored result, whose
//! text is printed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use result::{Limit, Of, Row, SCHEMA, Stored, Verdict, sink, text};

use super::{Job, Needs, derived};
use crate::output::Output;
use crate::{place, repo, results, shipped};

/// The values of the words in braces of a command.
pub(super) struct Words {
    /// `{program}`: the shipped program; empty where the job does not measure it.
    pub program: String,
    /// `{target}`: the static target of this machine.
    pub target: String,
    /// `{target_dir}`: cargo's.
    pub target_dir: PathBuf,
    /// `{work}`: a folder of the job, kept, so that an interrupted study resumes.
    pub work: PathBuf,
    /// `{rows}`: the file that takes rows.
    pub rows: PathBuf,
}

impl Words {
    /// The word with everything in braces written out.
    pub(super) fn fill(&self, word: &str) -> String {
        word.replace("{program}", &self.program)
            .replace("{profile}", shipped::PROFILE)
            .replace("{target}", &self.target)
            .replace("{target_dir}", &self.target_dir.to_string_lossy())
            .replace("{work}", &self.work.to_string_lossy())
            .replace("{rows}", &self.rows.to_string_lossy())
    }
}

/// Runs it, stores and prints the result. `false` where a budget is missed; an error, and nothing
/// stored, where a command fails.
pub(super) fn job(root: &Path, job: &Job, arguments: &[String], out: Option<&Path>) -> Result<bool> {
    if job.needs.is_some() || job.program {
        Output::Terminal.run(root, "sh", &["xtask/deps.sh", job.needs.map_or("build", Needs::word)])?;
    }
    let target_dir = repo::target_dir(root)?;
    let work = target_dir.join("jobs").join(&job.name);
    let mut words = Words {
        program: String::new(),
        target: shipped::target(),
        rows: work.join("rows.jsonl"),
        target_dir,
        work,
    };
    let mut binary_sha256 = None;
    if job.program {
        let path = shipped::build(root, &words.target, &mut Output::Terminal)?;
        binary_sha256 = Some(shipped::sha256(&path)?);
        words.program = path.to_string_lossy().into_owned();
    }
    let commit = place::commit(root)?;
    clear(&words.work, binary_sha256.as_deref().unwrap_or(&commit))?;
    for command in &job.build {
        call(root, &words, command, &[])?;
    }
    let _ = fs::remove_file(&words.rows);
    let (started, clock) = (SystemTime::now(), Instant::now());
    let ended = job.run.iter().try_for_each(|command| call(root, &words, command, arguments));
    let (mut notes, mut rows) = collected(&words.rows)?;
    if let Err(error) = ended {
        print!("{}", text::table(&notes, &rows));
        return Err(error.context(format!("{}: not stored", job.name)));
    }
    for file in &job.rows {
        let (more_notes, more) = derived::read(file.from, Path::new(&words.fill(&file.file)), &file.prefix)?;
        notes.extend(more_notes.into_iter().filter(|note| !notes.contains(note)).collect::<Vec<_>>());
        rows.extend(more);
    }
    if rows.is_empty() {
        rows.push(all_succeeded(job.run.len()));
    }
    let further = if arguments.is_empty() { String::new() } else { format!(" -- {}", arguments.join(" ")) };
    let stored = Stored {
        schema: SCHEMA.to_owned(),
        name: job.result().to_owned(),
        commit,
        profile: job.profile().to_owned(),
        program: job.program,
        binary_sha256,
        machine: place::machine(),
        started: place::utc(started),
        took_s: Some(clock.elapsed().as_secs_f64().round()),
        command: format!("cargo xtask {} {}{further}", job.kind, job.short_name()),
        notes,
        rows,
    };
    store(root, &stored, out)
}

/// Empties the folder of a job unless it holds cells of the very same program or commit, so that no
/// result mixes two.
fn clear(work: &Path, of: &str) -> Result<()> {
    let mark = work.join("of");
    let same = fs::read_to_string(&mark).is_ok_and(|text| text == of) && !of.ends_with("-dirty");
    if !same && work.exists() {
        fs::remove_dir_all(work).with_context(|| format!("remove {}", work.display()))?;
    }
    fs::create_dir_all(work).with_context(|| format!("create {}", work.display()))?;
    fs::write(&mark, of).with_context(|| format!("write {}", mark.display()))
}

/// A job without rows of its own: its commands judge, by their exit codes.
fn all_succeeded(commands: usize) -> Row {
    let n = commands as f64;
    Row::new("commands that succeeded", n, "").n(commands as u64).budget(Of::Value, Limit::AtLeast(n))
}

fn collected(path: &Path) -> Result<(Vec<String>, Vec<Row>)> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.with_context(|| format!("read {}", path.display()))?,
    };
    sink::read(&text).map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))
}

/// Runs a command; rows that it prints among other text go to the file of rows as well.
fn call(root: &Path, words: &Words, command: &[String], further: &[String]) -> Result<()> {
    let whole: Vec<String> =
        command.iter().map(|word| words.fill(word)).chain(further.iter().cloned()).collect();
    let (program, arguments) = whole.split_first().context("an empty command")?;
    println!("$ {}", whole.join(" "));
    let mut command = Command::new(program);
    let command = command.args(arguments).current_dir(root).stdin(Stdio::null());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("run {program}"))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    // A test runner may print what tests print to either.
    let picked = std::thread::scope(|scope| {
        let errors = scope.spawn(|| pass_on(errors, |line| eprintln!("{line}")));
        let mut picked = pass_on(output, |line| println!("{line}"));
        picked.extend(errors.join().unwrap_or_default());
        picked
    });
    let status = child.wait().with_context(|| format!("wait for {program}"))?;
    if !picked.is_empty() {
        let file = fs::OpenOptions::new().create(true).append(true).open(&words.rows);
        let written = file.and_then(|mut file| writeln!(file, "{}", picked.join("\n")));
        written.with_context(|| format!("write {}", words.rows.display()))?;
    }
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// Prints each line, and returns those that are rows or notes.
fn pass_on(output: Option<impl Read>, print: impl Fn(&str)) -> Vec<String> {
    let mut picked = Vec::new();
    let lines = output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n'));
    for line in lines.map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        print(&line);
        if sink::picked(&line).is_some() {
            picked.push(line.trim().to_owned());
        }
    }
    picked
}

/// Writes the file after it has been read back as a reader would, prints it, and says whether no
/// budget is missed.
fn store(root: &Path, stored: &Stored, out: Option<&Path>) -> Result<bool> {
    let json = stored.write()?;
    results::parse(&stored.name, &json).map_err(|why| anyhow::anyhow!("{}: {why}", stored.name))?;
    let folder = out.map_or_else(|| root.join(results::FOLDER), Path::to_path_buf);
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let path = folder.join(format!("{}.json", stored.name));
    let whole = folder.join(format!(".{}.json.new", stored.name));
    fs::write(&whole, json).with_context(|| format!("write {}", whole.display()))?;
    fs::rename(&whole, &path).with_context(|| format!("write {}", path.display()))?;
    print!("\n{}written: {}\n", text::result(stored), path.display());
    if out.is_none() {
        println!("the pages that show it: cargo xtask docs");
    }
    Ok(stored.rows.iter().all(|row| row.verdict != Verdict::Missed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Jobs;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("stillcore-xtask-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A job whose command writes these lines as its rows, run to its end.
    fn run_of(name: &str, lines: &str, exit: i32) -> (Result<bool>, Option<String>) {
        let out = folder(name);
        let script = format!("cat >{{rows}} <<'E'\n{lines}\nE\nexit {exit}");
        let list = format!(
            "[[job]]\nname = \"bench-{name}\"\nkind = \"bench\"\nabout = \"x\"\nminutes = 1\nprofile = \"none\"\nrun = [[\"sh\", \"-c\", {script:?}]]\n"
        );
        let jobs = Jobs::parse(&list).unwrap();
        let done = job(&repo::root(), &jobs.jobs[0], &[], Some(&out));
        let text = fs::read_to_string(out.join(format!("bench-{name}.json"))).ok();
        fs::remove_dir_all(&out).unwrap();
        (done, text)
    }

    fn line(row: &Row) -> String {
        serde_json::to_string(&sink::Line::Row(Box::new(row.clone()))).unwrap()
    }

    #[test]
    fn a_missed_budget_is_stored_and_fails() {
        let met = Row::new("rate", 3.0, "").budget(Of::Value, Limit::AtLeast(2.0));
        let missed = Row::new("time", 3.0, "s").budget(Of::Value, Limit::AtMost(2.0));
        let open = Row::new("memory", 3.0, "").between(1.0, 4.0).budget(Of::Value, Limit::AtMost(2.0));
        let (done, text) = run_of("met", &format!("{}\n{}", line(&met), line(&open)), 0);
        assert!(done.unwrap());
        let stored = results::parse("bench-met", &text.unwrap()).unwrap();
        assert_eq!(stored.rows, [met.clone(), open]);
        assert_eq!(stored.binary_sha256, None);
        let (done, text) = run_of("missed", &format!("{}\n{}", line(&met), line(&missed)), 0);
        assert!(!done.unwrap());
        assert!(text.unwrap().contains("\"verdict\":\"missed\""));
    }

    #[test]
    fn what_fails_is_not_stored() {
        let (done, text) = run_of("failed", &line(&Row::new("rate", 3.0, "")), 7);
        assert!(format!("{:#}", done.unwrap_err()).contains("not stored"));
        assert_eq!(text, None);
        let (done, text) = run_of("torn", "{\"row\":{\"what\"", 0);
        assert!(format!("{:#}", done.unwrap_err()).contains("line 1"));
        assert_eq!(text, None);
    }

    #[test]
    fn rows_among_other_text_are_picked_out() {
        let work = folder("picked");
        let row = Row::new("rate", 3.0, "");
        let words = Words {
            program: String::new(),
            target: String::new(),
            target_dir: work.clone(),
            rows: work.join("rows.jsonl"),
            work: work.clone(),
        };
        let text = format!("running 1 test\n    {}\ntest a ... ok", line(&row));
        let command = ["sh", "-c", "printf '%s\\n' \"$0\"; printf '%s\\n' \"$1\" >&2"].map(str::to_owned);
        let other = Row::new("time", 1.0, "s");
        call(&work, &words, &command, &[text, line(&other)]).unwrap();
        assert_eq!(collected(&words.rows).unwrap().1, [row, other]);
        fs::remove_dir_all(&work).unwrap();
    }

    #[test]
    fn the_folder_of_another_program_is_emptied() {
        let work = folder("work");
        let cell = work.join("cell");
        for (of, kept) in
            [("aa", false), ("aa", true), ("bb", false), ("cc-dirty", false), ("cc-dirty", false)]
        {
            clear(&work, of).unwrap();
            assert_eq!(cell.exists(), kept, "{of}");
            fs::write(&cell, "").unwrap();
        }
        fs::remove_dir_all(&work).unwrap();
    }

    #[test]
    fn a_job_without_rows_is_judged_by_its_commands() {
        let row = all_succeeded(2);
        assert_eq!((row.value, row.verdict), (Some(2.0), Verdict::Met));
    }
}

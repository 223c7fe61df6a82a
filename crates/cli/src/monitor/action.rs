//! What is done about a breach: a program of the user's is started, as another user, with the
//! breach on its standard input.
//!
//! One at a time, for so long at most. What waits meanwhile is bounded; what does not fit is
//! counted.

use audit::program;
use machine::Root;
use model::monitor::{Actions as Counts, Breach, FILE};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sys::given_back;
use sys::process::{end_group, has_ended};

/// Breaches that wait while a program runs.
const WAITING: usize = 16;
/// How long one may run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where it finds others.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The action, if there is one.
pub(super) struct Action(Option<Inside>);

struct Inside {
    program: PathBuf,
    user: u32,
    waiting: VecDeque<(String, File)>,
    running: Option<(Child, Instant)>,
    counts: Counts,
}

/// Whether a program may be started so: nobody but root may change it, or whoever can would act as
/// that user.
pub(super) fn check(program: &Path, user: u32) -> anyhow::Result<()> {
    anyhow::ensure!(user != 0, "--on-breach-user 0: actions do not run as root; choose another user");
    let root = Root::open(Path::new("/"))?;
    program::trusted(&root, program)
        .map_err(|reason| anyhow::anyhow!("--on-breach {}: {reason}", program.display()))
}

impl Action {
    /// This program, as this user; none where there is no program.
    pub(super) fn new(program: Option<&Path>, user: u32) -> Self {
        Self(program.map(|program| Inside {
            program: program.to_owned(),
            user,
            waiting: VecDeque::new(),
            running: None,
            counts: Counts::default(),
        }))
    }

    /// How often it has run.
    pub(super) fn counts(&self) -> Option<Counts> {
        self.0.as_ref().map(|inside| inside.counts)
    }

    /// A breach has been kept in this directory.
    pub(super) fn kept(&mut self, breach: &Breach, dir: &Path) {
        let Some(inside) = &mut self.0 else { return };
        // The directory is closed to that user; what is open already is not.
        match File::open(dir.join(FILE)) {
            Ok(file) if inside.waiting.len() < WAITING => inside.waiting.push_back((breach.id.clone(), file)),
            _ => inside.counts.skipped += 1,
        }
        self.go_on();
    }

    /// Takes note of the end of a program, and starts the next.
    pub(super) fn go_on(&mut self) {
        let Some(inside) = &mut self.0 else { return };
        if let Some((child, begun)) = &mut inside.running {
            if !has_ended(child) && begun.elapsed() < PATIENCE {
                return;
            }
            let well = end_group(child).is_ok_and(|status| status.success());
            inside.running = None;
            *(if well { &mut inside.counts.done } else { &mut inside.counts.failed }) += 1;
        }
        while inside.running.is_none()
            && let Some((id, breach)) = inside.waiting.pop_front()
        {
            match inside.start(&id, breach) {
                Ok(child) => inside.running = Some((child, Instant::now())),
                Err(error) => {
                    eprintln!("note: cannot start {}: {error}", inside.program.display());
                    inside.counts.failed += 1;
                }
            }
        }
    }
}

impl Inside {
    fn start(&self, id: &str, breach: File) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        given_back::huge_pages_again(&mut command);
        // Without root's groups: the standard library clears them where the user is another one.
        command
            .env_clear()
            .env("PATH", PATH)
            .env("STILLCORE_BREACH", id)
            .current_dir("/")
            .stdin(breach)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .gid(self.user)
            .uid(self.user)
            .spawn()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(|(child, _)| drop(end_group(child)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::monitor::{BreachKind, Fate, Late};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use sys::process::is_root;

    fn breach(id: &str) -> Breach {
        let worst = Late {
            kind: BreachKind::Reported,
            cpu: None,
            tid: None,
            comm: "x".to_owned(),
            t_ns: 0,
            value_ns: None,
        };
        Breach {
            schema: model::monitor::BREACH.to_owned(),
            id: id.to_owned(),
            at: String::new(),
            watched_since: String::new(),
            limit_ns: None,
            times: 1,
            worst,
            lasted_ns: 0,
            fate: Fate::Kept,
            explained: None,
            group: None,
            changed: Vec::new(),
        }
    }

    /// A program that anybody may execute, and a directory that anybody may write to.
    fn program(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o777)).unwrap();
        path
    }

    fn user() -> u32 {
        if is_root() { 65534 } else { std::fs::metadata("/proc/self").unwrap().uid() }
    }

    fn until(action: &mut Action, enough: impl Fn(Counts) -> bool) -> Counts {
        for _ in 0..2_000 {
            action.go_on();
            let counts = action.counts().unwrap();
            if enough(counts) {
                return counts;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{:?}", action.counts());
    }

    #[test]
    fn it_runs_as_somebody_else_with_the_breach_on_its_input_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let text = format!(
            "(id -u; id -G; echo $STILLCORE_BREACH; cat; env | wc -l) >{0}; sleep 600 & echo $! >{0}.pid",
            out.display()
        );
        let program = program(dir.path(), &text);
        // The directory of a breach is closed to others.
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join(FILE), "{\"id\": 7}\n").unwrap();
        std::fs::set_permissions(run.path().join(FILE), PermissionsExt::from_mode(0o600)).unwrap();
        let mut action = Action::new(Some(&program), user());
        action.kept(&breach("b7"), run.path());
        assert_eq!(until(&mut action, |counts| counts.done > 0), Counts { done: 1, failed: 0, skipped: 0 });
        let said = std::fs::read_to_string(&out).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], user().to_string());
        if is_root() {
            assert_eq!(lines[1], user().to_string(), "none of root's groups");
        }
        assert_eq!(lines[2..4], ["b7", "{\"id\": 7}"], "{said}");
        let left = std::fs::read_to_string(dir.path().join("out.pid")).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
        for _ in 0..400 {
            if state().is_empty() || state().contains(") Z ") {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("what it left behind still runs: {}", state());
    }

    #[test]
    fn one_at_a_time_and_what_does_not_fit_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let program = program(dir.path(), "test $STILLCORE_BREACH != b0 || exec sleep 600; exit 3");
        std::fs::write(dir.path().join(FILE), "{}").unwrap();
        let mut action = Action::new(Some(&program), user());
        for number in 0..=WAITING + 2 {
            action.kept(&breach(&format!("b{number}")), dir.path());
        }
        // One runs.
        assert_eq!(action.counts().unwrap(), Counts { done: 0, failed: 0, skipped: 2 });
        let inside = action.0.as_mut().unwrap();
        inside.running.iter_mut().for_each(|(_, begun)| *begun -= PATIENCE);
        let counts = until(&mut action, |counts| counts.failed > WAITING as u64);
        assert_eq!((counts.done, counts.skipped), (0, 2));
        // A breach that has given way meanwhile, and no action at all.
        action.kept(&breach("gone"), Path::new("/nowhere"));
        assert_eq!(action.counts().unwrap().skipped, 3);
        let mut none = Action::new(None, user());
        none.kept(&breach("b"), dir.path());
        assert_eq!(none.counts(), None);
    }

    #[test]
    fn root_and_what_others_may_change_are_refused() {
        let said = |program: &str, user| check(Path::new(program), user).unwrap_err().to_string();
        assert!(said("/bin/true", 0).contains("do not run as root"));
        assert!(said("true", 65534).starts_with("--on-breach true: "));
        let dir = tempfile::tempdir().unwrap();
        assert!(check(&program(dir.path(), "true"), 65534).is_err());
    }
}

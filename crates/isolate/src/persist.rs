//! Isolation that comes back after a boot, in files of stillcore's own beside those of the
//! distribution:
//!
//! - sysctls: `/etc/sysctl.d` (sysctl.d(5));
//! - everything else: a systemd unit that plans anew after each boot and applies, because
//!   interrupts, threads and devices have other numbers then.
//!
//! The kernel command line is `boot`'s part. Where a machine has none of these, the recipe is
//! printed.

use crate::unit::{ISOLATE as UNIT, command_line, leads_to_own, link_folder, ours, reload, remove_files};
use boot::store;
use machine::Root;
use model::plan::{Plan, StepKind};
use std::path::Path;
use sys::Error;

const SYSCTL: &str = "etc/sysctl.d/90-stillcore.conf";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants/stillcore-isolate.service";

/// The first line of each file: what does not have it is not ours.
const MARK: &str = "# Made by stillcore isolate persist; stillcore isolate persist --remove takes it away.";

/// Everybody may read them.
const MODE: u32 = 0o644;

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its path under the root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A symbolic link to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its path under the root.
    pub path: String,
    /// Where it leads.
    pub to: String,
}

/// What to put where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Persistence {
    /// Files.
    pub files: Vec<TextFile>,
    /// Links.
    pub links: Vec<Link>,
    /// Commands that make the files effective, for the machine that runs.
    pub commands: Vec<Vec<String>>,
    /// What is left to do by hand, a line each.
    pub by_hand: Vec<String>,
}

impl Persistence {
    /// A unit that is started after each boot. `link`: where systemd looks for it.
    pub(crate) fn of_unit(root: &Root, unit: &str, link: &str, text: String) -> Self {
        Self {
            files: vec![TextFile { path: unit.to_owned(), text }],
            links: vec![Link { path: link.to_owned(), to: format!("/{unit}") }],
            commands: reload(root, true),
            by_hand: Vec::new(),
        }
    }

    /// A machine without systemd.
    pub(crate) fn by_hand(line: String) -> Self {
        Self { by_hand: vec![line], ..Self::default() }
    }
}

/// Works out what to put where. `program` and `arguments` are what the unit calls.
pub fn persistence(root: &Root, plan: &Plan, program: &Path, arguments: &[String]) -> Persistence {
    let mut all = Persistence::default();
    let sysctls = sysctls(plan);
    if !sysctls.is_empty() {
        if root.has("etc/sysctl.d") {
            let text = format!("{MARK}\n{}\n", sysctls.join("\n"));
            all.files.push(TextFile { path: SYSCTL.to_owned(), text });
        } else {
            all.by_hand
                .push(format!("set at each boot: sysctl -w {}", sysctls.join(" ").replace(" = ", "=")));
        }
    }
    unit(root, program, arguments, &mut all);
    all
}

/// Lines of sysctl.d. Slashes are taken as they are, so that names with dots stay whole.
fn sysctls(plan: &Plan) -> Vec<String> {
    let files = plan.steps.iter().filter(|step| step.kind == StepKind::File);
    files
        .filter_map(|step| Some(format!("{} = {}", step.target.strip_prefix("/proc/sys/")?, step.new)))
        .collect()
}

fn unit(root: &Root, program: &Path, arguments: &[String], all: &mut Persistence) {
    let call = |verb: &str, rest: &[String]| {
        let program = program.display().to_string();
        let words = [program.as_str(), "isolate", verb].into_iter();
        command_line(words.chain(rest.iter().map(String::as_str)))
    };
    if !root.has("etc/systemd/system") {
        all.by_hand.push(format!("call at the end of each boot: {}", call("apply", arguments)));
        return;
    }
    let made = link_folder(root);
    // 2 says that the kernel refused a part: what could be isolated is.
    let text = format!(
        "{MARK}\n{made}[Unit]\nDescription=Keep CPUs still (stillcore)\nAfter=multi-user.target\n\n[Service]\n\
         Type=oneshot\nRemainAfterExit=yes\nSuccessExitStatus=2\nExecStart={}\nExecStop={}\n\n[Install]\n\
         WantedBy=multi-user.target\n",
        call("apply", arguments),
        call("undo", &[])
    );
    all.files.push(TextFile { path: UNIT.to_owned(), text });
    all.links.push(Link { path: WANTED.to_owned(), to: format!("/{UNIT}") });
    all.commands.extend(reload(root, true));
}

/// Writes the files, whole or not at all; on an error those of this call are taken away again.
pub fn install(root: &Root, all: &Persistence) -> Result<(), Error> {
    store::sweep(root, all.files.iter().map(|file| file.path.as_str()));
    let mut before = Vec::new();
    for TextFile { path: file, .. } in &all.files {
        let found = store::read(root, file)?;
        if found.is_some() && !ours(root, file) {
            return Err(model::Error::invalid(
                root.at(file).display(),
                "it is not stillcore's",
                "no such file",
            )
            .into());
        }
        before.push((file, found));
    }
    let made = write_all(root, all);
    if made.is_err() {
        for (file, bytes) in before {
            let _ = match bytes {
                Some(bytes) => store::write(root, file, &bytes, MODE),
                None => store::remove(root, file),
            };
        }
    }
    made
}

fn write_all(root: &Root, all: &Persistence) -> Result<(), Error> {
    for TextFile { path: file, text } in &all.files {
        store::write(root, file, text.as_bytes(), MODE)?;
    }
    for Link { path: link, to } in &all.links {
        if store::link_target(root, link).is_some() && !leads_to_own(root, link) {
            // The unit of a package is enabled; ours has its name and comes before it.
            continue;
        }
        store::link(root, link, to)?;
    }
    Ok(())
}

/// Commands that make a removal effective on the machine that runs.
pub fn after_removal(root: &Root, removed: &[String]) -> Vec<Vec<String>> {
    reload(root, removed.iter().any(|path| path.trim_start_matches('/') == UNIT))
}

/// Takes away what `install` put there; gives what was removed. Files that are not ours stay.
pub fn remove(root: &Root) -> Result<Vec<String>, Error> {
    remove_files(root, &[WANTED, UNIT, SYSCTL])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::unit::WANTS;
    use fixture::tree;
    use model::plan::{BootStep, Placement, Step};
    use std::fs;
    use std::os::unix::fs::symlink;

    pub(crate) fn plan() -> Plan {
        let step = |target: &str, new: &str| Step {
            mechanism: "m".to_owned(),
            kind: StepKind::File,
            target: target.to_owned(),
            old: None,
            new: new.to_owned(),
            why: "w".to_owned(),
            cost: "c".to_owned(),
            risky: false,
            note: None,
        };
        let boot = BootStep {
            mechanism: "isolcpus".to_owned(),
            parameter: Some("isolcpus=managed_irq,domain,2-3".to_owned()),
            what: "w".to_owned(),
        };
        Plan {
            schema: model::plan::SCHEMA.to_owned(),
            cpus: "2-3".parse().unwrap(),
            isolated: "2-3".parse().unwrap(),
            housekeeping: "0-1".parse().unwrap(),
            placement: Placement::Affinity,
            placement_reason: String::new(),
            steps: vec![step("/proc/sys/kernel/numa_balancing", "0"), step("/sys/kernel/rcu_normal", "1")],
            boot: vec![boot],
            left: Vec::new(),
            boot_line: model::boot::BootLine::default(),
            keep: Vec::new(),
            residents: Vec::new(),
            move_pinned: false,
        }
    }

    fn arguments() -> Vec<String> {
        vec!["--cpus".to_owned(), "2-3".to_owned()]
    }

    #[test]
    fn a_machine_gets_files_of_its_own_and_gets_rid_of_them() {
        let keep = ["etc/sysctl.d/.keep", "etc/systemd/system/.keep"];
        let (_dir, root) = tree(&keep.map(|file| (file, "theirs")));
        let all = persistence(&root, &plan(), Path::new("/usr/bin/stillcore"), &arguments());
        assert!(all.by_hand.is_empty(), "{:?}", all.by_hand);
        install(&root, &all).unwrap();
        let sysctl = root.maybe(SYSCTL).unwrap();
        assert!(sysctl.ends_with("kernel/numa_balancing = 0"), "{sysctl}");
        let unit = root.maybe(UNIT).unwrap();
        assert!(unit.contains("ExecStart=/usr/bin/stillcore isolate apply --cpus 2-3\n"), "{unit}");
        // Another call knows that the directory of the link came with the first.
        let all = persistence(&root, &plan(), Path::new("/usr/bin/stillcore"), &arguments());
        install(&root, &all).unwrap();
        assert_eq!(remove(&root).unwrap().len(), 3);
        assert!(!root.has(WANTS), "it was made with the unit");
        assert!(remove(&root).unwrap().is_empty());
        // One that was there stays, however empty.
        fs::create_dir(root.at(WANTS)).unwrap();
        let all = persistence(&root, &plan(), Path::new("/usr/bin/stillcore"), &arguments());
        install(&root, &all).unwrap();
        assert_eq!(remove(&root).unwrap().len(), 3);
        assert!(root.has(WANTS));
    }

    #[test]
    fn the_enabled_unit_of_a_package_stays_enabled() {
        let packaged = "/usr/lib/systemd/system/stillcore-isolate.service";
        let (_dir, root) = tree(&[("etc/systemd/system/.keep", "theirs")]);
        fs::create_dir(root.at(WANTS)).unwrap();
        symlink(packaged, root.at(WANTED)).unwrap();
        let all = persistence(&root, &plan(), Path::new("/usr/bin/stillcore"), &arguments());
        install(&root, &all).unwrap();
        assert_eq!(fs::read_link(root.at(WANTED)).unwrap(), Path::new(packaged));
        assert_eq!(remove(&root).unwrap(), [format!("/{UNIT}")]);
        assert_eq!(fs::read_link(root.at(WANTED)).unwrap(), Path::new(packaged));
    }

    #[test]
    fn links_lead_nowhere_out_of_an_image() {
        let outside = tempfile::tempdir().unwrap();
        let hosts = outside.path().join("stillcore-isolate.service");
        fs::write(&hosts, MARK).unwrap();
        // The units of the machine that writes the image are no part of it.
        let (_dir, root) = tree(&[("etc/systemd/.keep", "")]);
        symlink(outside.path(), root.at("etc/systemd/system")).unwrap();
        assert!(remove(&root).is_err() || remove(&root).unwrap().is_empty());
        assert_eq!(fs::read_to_string(&hosts).unwrap(), MARK);
        // Nor is the directory of their links.
        let (_dir, root) = tree(&[("etc/systemd/system/.keep", ""), ("etc/sysctl.d/.keep", "")]);
        symlink(outside.path(), root.at(WANTS)).unwrap();
        let all = persistence(&root, &plan(), Path::new("/usr/bin/stillcore"), &arguments());
        let error = install(&root, &all).unwrap_err().to_string();
        assert!(error.contains("leads out of the tree"), "{error}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&hosts).unwrap(), MARK);
        assert!(!root.has(UNIT) && !root.has(SYSCTL));
    }

    #[test]
    fn where_nothing_fits_the_recipe_is_reported() {
        let (_dir, root) = tree(&[("etc/hostname", "x")]);
        let all = persistence(&root, &plan(), Path::new("/opt/still core"), &arguments());
        assert!(all.files.is_empty() && all.links.is_empty() && all.commands.is_empty());
        assert_eq!(all.by_hand.len(), 2);
        assert!(all.by_hand[0].ends_with("sysctl -w kernel/numa_balancing=0"), "{:?}", all.by_hand);
        assert!(all.by_hand[1].contains("\"/opt/still core\" isolate apply"), "{:?}", all.by_hand);
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let (_dir, root) = tree(&[("etc/sysctl.d/90-stillcore.conf", "kernel.x = 1")]);
        let all = persistence(&root, &plan(), Path::new("/s"), &arguments());
        assert!(install(&root, &all).unwrap_err().to_string().contains("it is not stillcore's"));
        assert!(remove(&root).unwrap().is_empty());
    }
}

//! A unit that calls stillcore again after each boot, until the work that spans them is done.
//!
//! Source: systemd.service(5), systemd.kill(5): the signal goes to the program alone, which ends
//! what it has started and undoes what that changed.

use crate::persist::Persistence;
use crate::unit::{REPLICATE as UNIT, command_line, link_folder, take_away};
use machine::Root;
use std::path::Path;
use sys::Error;

const WANTED: &str = "etc/systemd/system/multi-user.target.wants/stillcore-replicate.service";

/// The first line: what does not have it is not ours.
const MARK: &str = "# Made by stillcore study replicate --boots; its --stop takes it away.";

/// Works out the unit that makes this call, or what to do by hand where there is no systemd.
pub fn unit(root: &Root, program: &Path, arguments: &[String]) -> Persistence {
    let program = program.display().to_string();
    let call = command_line(std::iter::once(program.as_str()).chain(arguments.iter().map(String::as_str)));
    if !root.has("etc/systemd/system") {
        return Persistence::by_hand(format!("call after each boot: {call}"));
    }
    let made = link_folder(root);
    let text = format!(
        "{MARK}\n{made}[Unit]\nDescription=Go on with a replication after a boot (stillcore)\n\
         After=multi-user.target\n\n[Service]\nType=exec\nKillMode=mixed\nTimeoutStopSec=3min\n\
         ExecStart={call}\n\n[Install]\nWantedBy=multi-user.target\n"
    );
    Persistence::of_unit(root, UNIT, WANTED, text)
}

/// Takes it away; gives what was removed, and the commands that make that count.
pub fn remove(root: &Root) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
    take_away(root, UNIT, WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persist::tests::plan;
    use crate::persist::{install, persistence};
    use crate::unit::WANTS;
    use fixture::tree;

    #[test]
    fn it_comes_and_goes() {
        let (_dir, root) = tree(&[("etc/systemd/system/.keep", "theirs")]);
        let call = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ours = unit(&root, Path::new("/usr/bin/stillcore"), &call(&["study", "--out", "/a b"]));
        install(&root, &ours).unwrap();
        install(&root, &ours).unwrap();
        let text = root.maybe(UNIT).unwrap();
        assert!(text.contains("ExecStart=/usr/bin/stillcore study --out \"/a b\"\n"), "{text}");
        assert!(root.at(WANTED).is_symlink());
        assert_eq!(remove(&root).unwrap().0.len(), 2);
        assert!(!root.has(WANTS));
    }

    #[test]
    fn the_directory_of_links_goes_with_the_last_unit_of_ours() {
        let (_dir, root) = tree(&[("etc/systemd/system/.keep", "theirs")]);
        let program = Path::new("/usr/bin/stillcore");
        let isolation = || install(&root, &persistence(&root, &plan(), program, &[])).unwrap();
        let resume = || install(&root, &unit(&root, program, &[])).unwrap();
        for first_is_isolation in [true, false] {
            if first_is_isolation {
                isolation();
                resume();
            } else {
                resume();
                isolation();
            }
            assert_eq!(remove(&root).unwrap().0.len(), 2);
            assert!(root.has(WANTS));
            crate::persist::remove(&root).unwrap();
            assert!(!root.has(WANTS));
        }
    }

    #[test]
    fn without_systemd_the_call_is_made_by_hand() {
        let (_dir, root) = tree(&[("etc/hostname", "x")]);
        let all = unit(&root, Path::new("/s"), &["study".to_owned()]);
        assert_eq!(all.by_hand, ["call after each boot: /s study"]);
    }
}

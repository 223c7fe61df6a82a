//! Rule: the repository says nothing of the machine it was written on: no home directories, no
//! hosts of package registries or mirrors. Cargo.lock is cargo's own.

use super::Violation;
use crate::repo::Repo;

/// A directory of one machine (in two halves, so that this file does not report itself), and the
/// places where it means something else.
const FOLDERS: &[(&str, &[&str])] = &[
    (concat!("/ho", "me/"), &[]),
    // The lab's guest runs its command in root's home directory, and results are named by it.
    (concat!("/ro", "ot/"), &["crates/lab/", "crates/cli/", "docs/lab.md", "docs/commands-more.md"]),
    (concat!("/wo", "rk/"), &[]),
];

/// Hosts that serve packages: which one a machine uses is its own setting.
const REGISTRIES: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("py", "pi.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
];

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in repo.texts(|path| path != "Cargo.lock") {
        for (at, line) in text.lines().enumerate() {
            for (folder, _) in FOLDERS.iter().filter(|(f, free)| has_folder(line, f) && !is_free(path, free))
            {
                found.push(Violation::at(
                    path,
                    at + 1,
                    format!("the path `{folder}...`"),
                    "no path of one machine",
                ));
            }
            for host in REGISTRIES.iter().filter(|host| line.contains(**host)) {
                found.push(Violation::at(path, at + 1, format!("the host `{host}`"), "no registry host"));
            }
            if let Some(host) = private_host(line) {
                found.push(Violation::at(path, at + 1, format!("the host `{host}`"), "no private host"));
            }
        }
    }
    found
}

fn is_free(path: &str, free: &[&str]) -> bool {
    free.iter().any(|prefix| path.starts_with(prefix))
}

/// Whether an absolute path into `folder` starts in this line (not `something/home/`, which is
/// relative to something).
fn has_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./~$}>".contains(c))
    })
}

/// The host of a URL in this line that only means something in one network: an address or an
/// internal name. The loop-back interface exists on every machine.
fn private_host(line: &str) -> Option<&str> {
    line.match_indices("://").find_map(|(at, mark)| {
        let rest = &line[at + mark.len()..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".-@".contains(c))).unwrap_or(rest.len());
        let host = rest[..end].rsplit('@').next()?;
        let address = host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok());
        let internal = [".internal", ".local", ".lan", ".corp"].iter().any(|suffix| host.ends_with(suffix));
        ((address && !host.starts_with("127.")) || internal).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(path: &str, line: &str) -> usize {
        check(&Repo::of(&[(path, line)])).len()
    }

    #[test]
    fn absolute_paths_are_reported_and_relative_ones_are_not() {
        for (folder, _) in FOLDERS {
            assert_eq!(check_line("docs/a.md", &format!("see {folder}x")), 1, "{folder}");
            assert_eq!(check_line("docs/a.md", &format!("\"{folder}x\"")), 1, "{folder}");
            assert_eq!(check_line("docs/a.md", &format!("sub{folder}x")), 0, "{folder}");
            assert_eq!(check_line("Cargo.lock", &format!("see {folder}x")), 0, "{folder}");
        }
    }

    #[test]
    fn the_guest_may_name_its_own_home() {
        assert_eq!(check_line("crates/lab/src/results.rs", &format!("\"{}out\"", FOLDERS[1].0)), 0);
        assert_eq!(check_line("crates/sched/src/lib.rs", &format!("\"{}out\"", FOLDERS[1].0)), 1);
    }

    #[test]
    fn registries_and_private_hosts_are_reported() {
        for host in REGISTRIES {
            assert_eq!(check_line("a.md", &format!("https://{host}/x")), 1, "{host}");
        }
        assert_eq!(check_line("a.md", concat!("http://10.0", ".0.7:3128/")), 1);
        assert_eq!(check_line("a.md", concat!("http://user@mirror.build", ".internal/debian")), 1);
        assert_eq!(check_line("a.md", "http://127.0.0.1:9515/session and https://docs.kernel.org/trace"), 0);
    }
}

//! Debian's own programs that make boot configurations, on a machine of their own: what persist
//! writes is in what they make, survives that they make it anew, and is gone afterwards.

use crate::boot_line::kernel;
use crate::machine::Guest;
use boot::{Effects, effects};
use model::Cpus;

/// The files that each program makes, what a kernel command line stands behind there, and what of
/// others stands on the line before.
const MADE: [(&str, &str, &str); 5] = [
    ("grub", "linux", ""),
    ("grub-others", "linux", "1"),
    ("u-boot", "append", ""),
    ("u-boot-others", "append", "1"),
    ("entries", "options", ""),
];

/// Kernel command lines of a configuration.
fn lines<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let of_key = |line: &'t str| line.trim_start().strip_prefix(key)?.strip_prefix([' ', '\t']);
    text.lines().filter_map(of_key).collect()
}

/// All checks.
pub(crate) fn what_is_written_survives_the_real_programs(guest: &Guest) {
    let read = |name: &str| guest.read(name);
    let cpus: Cpus = guest.case.arguments[0].parse().unwrap();
    let kernel = kernel(guest.kernel());
    let mut seen = 0;
    for (name, key, theirs) in MADE {
        for step in ["persist", "remove"] {
            let step = format!("{name}-{step}");
            assert_eq!(read(&format!("{step}.code")).trim(), "0", "{step}: {}", read(&step));
        }
        let before = read(&format!("{name}-before"));
        let theirs: Cpus = Cpus::parse_list(theirs).unwrap();
        let first = lines(&before, key);
        assert!(!first.is_empty(), "{name}: {}{before}", read(&format!("{name}.log")));
        assert!(first.iter().all(|line| effects(&kernel, line).domain == theirs), "{name}: {first:?}");
        for when in ["with", "again"] {
            let text = read(&format!("{name}-{when}"));
            let now = lines(&text, key);
            assert_eq!(now.len(), first.len(), "{name} {when}: {text}");
            for line in now {
                let Effects { domain, nohz_full, rcu_nocbs, dropped, .. } = effects(&kernel, line);
                assert_eq!(domain, theirs.or(&cpus), "{name} {when}: {line}");
                assert_eq!([&nohz_full, &rcu_nocbs], [&cpus; 2], "{name} {when}: {line}");
                assert!(dropped.is_empty(), "{name} {when}: {line}: {dropped:?}");
                seen += 1;
            }
        }
        assert_eq!(read(&format!("{name}-after")), before, "{name}");
        let sums = |when: &str| read(&format!("{name}-{when}.sums"));
        assert!(sums("before").lines().count() > 3 && sums("after") == sums("before"), "{name}");
    }
    // The boot loader's own reading of the entry, after it was made anew.
    let list = read("bootctl-list");
    assert!(list.contains(&format!("isolcpus=managed_irq,domain,{cpus}")), "{list}");
    assert!(!read("bootctl-after").contains("isolcpus"), "{}", read("bootctl-after"));
    println!("{}: {seen} lines made by update-grub, u-boot-update and kernel-install", guest.machine.name);
}

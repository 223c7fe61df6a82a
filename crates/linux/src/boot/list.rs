//! The CPU lists of boot parameters, as kernels of different age read them.
//!
//! Sources: Linux `lib/bitmap-str.c` (`bitmap_parselist`; `N` since 5.13, `all` since 5.14),
//! `kernel/sched/isolation.c` (`housekeeping_isolcpus_setup`),
//! `Documentation/admin-guide/kernel-parameters.rst` (cpu lists).

use super::target::Kernel;
use model::Cpus;

/// The CPUs of a list; an error is the reason for which the kernel does not take it.
pub(crate) fn cpus(kernel: &Kernel, list: &str) -> Result<Cpus, String> {
    let last = kernel.possible.0.last().copied().unwrap_or(0);
    if list == "all" && kernel.since(5, 14) {
        return Ok(kernel.possible.clone());
    }
    let spelled = if kernel.since(5, 13) { list.replace('N', &last.to_string()) } else { list.to_owned() };
    // The kernel takes blanks for commas.
    let spelled: Vec<_> = spelled.split_whitespace().collect();
    let cpus = Cpus::parse_list(&spelled.join(",")).map_err(|_| format!("{list:?} is no CPU list"))?;
    match cpus.0.last() {
        None => Err("it names no CPU".to_owned()),
        Some(&highest) if highest > last => {
            Err(format!("it names CPU {highest} on a machine whose last CPU is {last}"))
        }
        _ => Ok(cpus),
    }
}

/// The flags of `isolcpus=`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) domain: bool,
    pub(crate) managed_irq: bool,
    pub(crate) nohz: bool,
}

/// The flags and the list of a value of `isolcpus=`. Without a flag that the kernel knows it means
/// `domain`. Flags that it does not know are skipped since 5.8 (3662daf02350); before, the whole
/// parameter goes. `managed_irq` came with 5.6.
pub(crate) fn isolcpus<'a>(kernel: &Kernel, value: &'a str) -> Result<(Flags, &'a str), String> {
    let mut rest = value;
    let mut flags = Flags::default();
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        // A flag ends with a comma, so a value that ends with one has no list.
        let Some((word, after)) = rest.split_once(',') else { return Err("it has no CPU list".to_owned()) };
        match word {
            "domain" => flags.domain = true,
            "managed_irq" if kernel.since(5, 6) => flags.managed_irq = true,
            "nohz" => flags.nohz = true,
            other if kernel.since(5, 8) && other.chars().all(|c| c.is_ascii_alphabetic() || c == '_') => {}
            other => return Err(format!("{other:?} is no flag that this kernel knows")),
        }
        rest = after;
    }
    if flags == Flags::default() {
        flags.domain = true;
    }
    Ok((flags, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(release: &str, list: &str) -> Option<String> {
        let possible: Cpus = (0..8).collect();
        let kernel = Kernel { release: release.to_owned(), possible, ..Kernel::default() };
        cpus(&kernel, list).ok().map(|cpus| cpus.to_string())
    }

    #[test]
    fn older_kernels_know_fewer_words() {
        for (list, old, new) in [
            ("2-5", Some("2-5"), Some("2-5")),
            ("2, 5", Some("2,5"), Some("2,5")),
            ("6-N", None, Some("6,7")),
            ("all", None, Some("0-7")),
            ("0xc", None, None),
            ("2-8", None, None),
            ("", None, None),
        ] {
            assert_eq!(read("5.10.0", list).as_deref(), old, "{list}");
            assert_eq!(read("6.1", list).as_deref(), new, "{list}");
        }
    }

    #[test]
    fn flags_come_first_and_end_with_a_comma() {
        let of = |release: &str| Kernel { release: release.to_owned(), ..Kernel::default() };
        let isolcpus = |value| isolcpus(&of("6.1"), value);
        let set = |domain, managed_irq, nohz| Flags { domain, managed_irq, nohz };
        assert_eq!(isolcpus("2-3"), Ok((set(true, false, false), "2-3")));
        assert_eq!(isolcpus("managed_irq,domain,2"), Ok((set(true, true, false), "2")));
        assert_eq!(isolcpus("nohz,2"), Ok((set(false, false, true), "2")));
        assert_eq!(isolcpus("foo,2,3"), Ok((set(true, false, false), "2,3")));
        assert!(isolcpus("all").is_err() && isolcpus("domain").is_err() && isolcpus("a0,2").is_err());
        // 5.4 takes none of the parameter for a flag that it does not know.
        assert!(super::isolcpus(&of("5.4"), "managed_irq,domain,2").is_err());
        assert_eq!(super::isolcpus(&of("5.4"), "domain,2"), Ok((set(true, false, false), "2")));
    }
}

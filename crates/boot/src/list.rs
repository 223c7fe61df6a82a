//! The CPU lists of boot parameters, as kernels of different age read them.
//!
//! Sources: Linux `lib/bitmap-str.c` (`bitmap_parselist`; `N` since 5.13, `all` since 5.14),
//! `kernel/sched/isolation.c` (`housekeeping_isolcpus_setup`),
//! `kernel/rcu/tree_nocb.h` (`rcu_nocb_setup`), `include/linux/cpumask.h` (`nr_cpumask_bits`),
//! `Documentation/admin-guide/kernel-parameters.rst` (cpu lists).

use super::target::Kernel;
use model::Cpus;

/// The CPUs of a list; an error is the reason for which the kernel does not take it.
pub fn cpus(kernel: &Kernel, list: &str) -> Result<Cpus, String> {
    let last = last(kernel);
    let cpus = named(kernel, list)?;
    match cpus.0.last() {
        None => Err("it names no CPU".to_owned()),
        Some(&highest) if highest > last => {
            Err(format!("it names CPU {highest} on a machine whose last CPU is {last}"))
        }
        _ => Ok(cpus),
    }
}

/// The CPUs of `rcu_nocbs=`: a list that the kernel cannot read means every CPU, and of one that it
/// can read those count that are there. An error is the reason why it is not known which of the two
/// the kernel does.
pub(crate) fn rcu_nocbs(kernel: &Kernel, list: &str) -> Result<Cpus, String> {
    let all = || kernel.possible.clone();
    // Kernels before 5.14 know the word here alone.
    let Some(cpus) = named(kernel, list).ok().filter(|_| !list.eq_ignore_ascii_case("all")) else {
        return Ok(all());
    };
    let Some(&highest) = cpus.0.last() else { return Ok(cpus) };
    match bits(kernel) {
        Some(bits) if highest >= bits => Ok(all()),
        None if highest > last(kernel) => Err(format!(
            "rcu_nocbs={list} names CPU {highest} on a machine whose last CPU is {}: built with \
             CONFIG_CPUMASK_OFFSTACK the kernel takes it for all CPUs, else for those of the list that are there",
            last(kernel)
        )),
        _ => Ok(cpus.and(&kernel.possible)),
    }
}

fn last(kernel: &Kernel) -> u32 {
    kernel.possible.0.last().copied().unwrap_or(0)
}

/// How many CPUs the kernel's reader of lists knows. Before 6.1 (aa47a7c215e7) a kernel without
/// `CONFIG_CPUMASK_OFFSTACK` reads as many as it is built for; `None` where neither
/// its release nor its options are known.
fn bits(kernel: &Kernel) -> Option<u32> {
    let is_known = kernel.release.starts_with(|c: char| c.is_ascii_digit());
    if is_known && kernel.since(6, 1) || kernel.has("CONFIG_CPUMASK_OFFSTACK") == Some(true) {
        return Some(last(kernel) + 1);
    }
    kernel.config.as_ref()?.get("CONFIG_NR_CPUS")?.parse().ok()
}

/// What the list names, on whatever machine.
fn named(kernel: &Kernel, list: &str) -> Result<Cpus, String> {
    let end = bits(kernel).map_or_else(|| last(kernel), |bits| bits.saturating_sub(1));
    let number = |region: &str| match region.get(..3) {
        Some(word) if word.eq_ignore_ascii_case("all") && kernel.since(5, 14) => {
            format!("0-{end}{}", &region[3..])
        }
        _ if kernel.since(5, 13) => region.replace('N', &end.to_string()),
        _ => region.to_owned(),
    };
    // The kernel takes blanks for commas.
    let regions: Vec<_> = list.split(|c: char| c == ',' || c.is_whitespace()).map(number).collect();
    Cpus::parse_list(&regions.join(",")).map_err(|_| format!("{list:?} is no CPU list"))
}

/// The flags of `isolcpus=`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub(crate) domain: bool,
    pub(crate) managed_irq: bool,
    pub(crate) nohz: bool,
}

/// The words before the list of `isolcpus=`, known or not, and the list.
pub fn flagged(value: &str) -> (Vec<&str>, &str) {
    let (mut flags, mut rest) = (Vec::new(), value);
    while let Some((word, after)) = rest.split_once(',').filter(|(word, _)| starts_with_letter(word)) {
        flags.push(word);
        rest = after;
    }
    (flags, rest)
}

fn starts_with_letter(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The flags and the list of a value of `isolcpus=`. Without a flag that the kernel knows it means
/// `domain`. Flags that it does not know are skipped since 5.8 (3662daf02350); before, the whole
/// parameter goes. `managed_irq` came with 5.6.
pub fn isolcpus<'a>(kernel: &Kernel, value: &'a str) -> Result<(Flags, &'a str), String> {
    let (words, list) = flagged(value);
    // A flag ends with a comma, so a value that ends with one has no list.
    if starts_with_letter(list) {
        return Err("it has no CPU list".to_owned());
    }
    let mut flags = Flags::default();
    for word in words {
        match word {
            "domain" => flags.domain = true,
            "managed_irq" if kernel.since(5, 6) => flags.managed_irq = true,
            "nohz" => flags.nohz = true,
            other if kernel.since(5, 8) && other.chars().all(|c| c.is_ascii_alphabetic() || c == '_') => {}
            other => return Err(format!("{other:?} is no flag that this kernel knows")),
        }
    }
    if flags == Flags::default() {
        flags.domain = true;
    }
    Ok((flags, list))
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
            ("ALL:1/2", None, Some("0,2,4,6")),
            ("0xc", None, None),
            ("2-8", None, None),
            ("", None, None),
        ] {
            assert_eq!(read("5.10.0", list).as_deref(), old, "{list}");
            assert_eq!(read("6.1", list).as_deref(), new, "{list}");
        }
    }

    /// Debian builds for arm64 for 256 CPUs, for amd64 with `CONFIG_CPUMASK_OFFSTACK`; its 6.1 for
    /// arm64, booted with four CPUs, read `2-N` as 2-3 and took `rcu_nocbs=2-9` for all.
    #[test]
    fn what_is_beyond_the_last_cpu_depends_on_the_build() {
        let built = |release: &str, options: &[(&str, &str)]| Kernel {
            release: release.to_owned(),
            possible: (0..4).collect(),
            config: Some(options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()),
            ..Kernel::default()
        };
        let fixed = built("6.0", &[("CONFIG_NR_CPUS", "256")]);
        let offstack = built("6.0", &[("CONFIG_NR_CPUS", "8192"), ("CONFIG_CPUMASK_OFFSTACK", "y")]);
        let newer = built("6.1", &[("CONFIG_NR_CPUS", "256")]);
        let unknown = Kernel { config: None, ..built("6.0", &[]) };
        let spelled = |cpus: Result<Cpus, String>| cpus.map_or("-".to_owned(), |cpus| cpus.to_string());
        let rcu = |list: &str| {
            [&fixed, &offstack, &newer, &unknown].map(|kernel| spelled(rcu_nocbs(kernel, list))).join(" ")
        };
        assert_eq!(rcu("2-9"), "2,3 0-3 0-3 -");
        assert_eq!(rcu("2-300"), "0-3 0-3 0-3 -");
        assert_eq!(rcu("2-N"), "2,3 2,3 2,3 2,3");
        assert_eq!(rcu("All"), "0-3 0-3 0-3 0-3");
        assert_eq!(rcu("0x3"), "0-3 0-3 0-3 0-3");
        assert_eq!(rcu(""), "   ");
        let isolated = |list: &str| {
            [&fixed, &offstack, &newer, &unknown].map(|kernel| spelled(cpus(kernel, list))).join(" ")
        };
        // There N is CPU 255, and the kernel drops what is not there.
        assert_eq!(isolated("2-N"), "- 2,3 2,3 2,3");
        assert_eq!(isolated("2-9"), "- - - -");
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

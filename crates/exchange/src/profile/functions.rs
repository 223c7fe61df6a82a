//! The functions of TuneD that compute something from their arguments and from what the machine
//! says of itself. The others would run programs, or ask drivers.

use machine::Root;
use model::Cpus;
use regex_lite::{Regex, RegexBuilder};

/// The CPUs that are online.
const ONLINE: &str = "sys/devices/system/cpu/online";

/// The value of a function; none where it has none, or is not known here.
pub(super) fn value(name: &str, arguments: &[String], machine: &Root) -> Option<String> {
    let list = || cpus(arguments);
    Some(match (name, arguments) {
        ("strip", [_, ..]) => arguments.concat().trim().to_owned(),
        ("cpulist_unpack", _) => numbers(&list()?, ""),
        ("cpulist_pack", _) => list()?.to_string(),
        ("cpulist2devs", _) => numbers(&list()?, "cpu"),
        ("cpulist2hex", _) => hex(&list()?),
        ("cpulist_invert", _) => numbers(&machine.cpus(ONLINE)?.minus(&list()?), ""),
        ("cpulist2hex_invert", _) => hex(&machine.cpus(ONLINE)?.minus(&list()?)),
        ("cpulist_online", _) => numbers(&list()?.and(&machine.cpus(ONLINE)?), ""),
        ("cpulist_present", _) => numbers(&list()?.and(&machine.cpus("sys/devices/system/cpu/present")?), ""),
        ("hex2cpulist", [mask]) => numbers(&mask_of(mask)?, ""),
        ("kb2s", [kib]) => kib.trim().parse::<u64>().ok()?.checked_mul(2)?.to_string(),
        ("s2kb", [sectors]) => (sectors.trim().parse::<u64>().ok()? / 2).to_string(),
        ("regex_search_ternary", [text, pattern, yes, no]) => {
            let found = Regex::new(pattern).ok()?.is_match(text);
            if found { yes } else { no }.clone()
        }
        ("cpuinfo_check", [_, _, ..]) => first_found(arguments, &machine.maybe("proc/cpuinfo")?)?,
        ("calc_isolated_cores", []) => numbers(&all_but(1, machine), ""),
        ("calc_isolated_cores", [spared]) => numbers(&all_but(spared.trim().parse().ok()?, machine), ""),
        _ => return None,
    })
}

/// Lists and masks (`0x…`); the function's arguments are parts of one list.
fn cpus(arguments: &[String]) -> Option<Cpus> {
    let (mut all, mut not) = (Cpus::default(), Cpus::default());
    for argument in arguments {
        let text = argument.trim_matches(['\'', '"']);
        if text.trim_start().to_ascii_lowercase().starts_with("0x") {
            all = all.or(&mask_of(text)?);
            continue;
        }
        for part in text.split(',') {
            match part.trim().strip_prefix(['^', '!']) {
                Some(part) => not = not.or(&Cpus::parse_list(part).ok()?),
                None => all = all.or(&Cpus::parse_list(part).ok()?),
            }
        }
    }
    Some(all.minus(&not))
}

/// A mask as TuneD writes it: words, or one long number.
fn mask_of(text: &str) -> Option<Cpus> {
    let digits: String = text.trim().chars().filter(|letter| *letter != ',').collect();
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(&digits);
    if !digits.is_ascii() {
        return None;
    }
    let words: Vec<&str> =
        digits.as_bytes().rchunks(8).rev().filter_map(|word| std::str::from_utf8(word).ok()).collect();
    Cpus::parse_hex(&words.join(",")).ok()
}

fn numbers(cpus: &Cpus, prefix: &str) -> String {
    cpus.iter().map(|cpu| format!("{prefix}{cpu}")).collect::<Vec<_>>().join(",")
}

/// Whole words of eight digits.
fn hex(cpus: &Cpus) -> String {
    let short = cpus.to_hex();
    let (first, rest) =
        short.split_once(',').map_or((short.as_str(), None), |(first, rest)| (first, Some(rest)));
    rest.map_or(format!("{first:0>8}"), |rest| format!("{first:0>8},{rest}"))
}

/// The value behind the first pattern that is found in the text; else the last argument, if there
/// is an odd one.
fn first_found(arguments: &[String], text: &str) -> Option<String> {
    let pairs = arguments.chunks_exact(2);
    let last = pairs.remainder().first().cloned().unwrap_or_default();
    for pair in pairs {
        if RegexBuilder::new(&pair[0]).multi_line(true).build().ok()?.is_match(text) {
            return Some(pair[1].clone());
        }
    }
    Some(last)
}

/// All CPUs but the first ones of each package.
fn all_but(spared: usize, machine: &Root) -> Cpus {
    let mut packages: Vec<(String, Vec<u32>)> = Vec::new();
    let cpus = "sys/devices/system/cpu";
    for name in machine.names(cpus) {
        let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) else { continue };
        let Some(package) = machine.maybe(&format!("{cpus}/{name}/topology/physical_package_id")) else {
            continue;
        };
        match packages.iter_mut().find(|(known, _)| *known == package) {
            Some((_, members)) => members.push(cpu),
            None => packages.push((package, vec![cpu])),
        }
    }
    packages
        .iter_mut()
        .flat_map(|(_, members)| {
            members.sort_unstable();
            members.iter().skip(spared).copied()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, arguments: &[&str]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
        put(ONLINE, "0-3,33\n");
        for (cpu, package) in [(0, 0), (1, 0), (2, 1), (10, 1)] {
            put(
                &format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"),
                &package.to_string(),
            );
        }
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        value(name, &arguments, &Root::open(dir.path()).unwrap())
    }

    #[test]
    fn lists_and_masks_have_the_spelling_of_tuned() {
        let cases: [(&str, &[&str], &str); 12] = [
            ("cpulist_unpack", &["1-3", "7"], "1,2,3,7"),
            ("cpulist_unpack", &["0-5,^3"], "0,1,2,4,5"),
            ("cpulist_unpack", &["0x0000000c,00000001"], "0,34,35"),
            ("cpulist_pack", &["1,2,3,7"], "1-3,7"),
            ("cpulist2devs", &["2-3"], "cpu2,cpu3"),
            ("cpulist2hex", &["2,3"], "0000000c"),
            ("cpulist2hex", &["0,33"], "00000002,00000001"),
            ("cpulist_invert", &["2-33"], "0,1"),
            ("cpulist2hex_invert", &["2-33"], "00000003"),
            ("cpulist_online", &["3-5"], "3"),
            ("hex2cpulist", &["c"], "2,3"),
            ("calc_isolated_cores", &["1"], "1,10"),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(of(name, arguments).as_deref(), Some(expected), "{name} {arguments:?}");
        }
    }

    #[test]
    fn patterns_decide_between_values() {
        let yes = |text| of("regex_search_ternary", &[text, r"\b[y,Y,1,t,T]\b", "managed_irq,", ""]);
        assert_eq!((yes("Y").as_deref(), yes("no").as_deref()), (Some("managed_irq,"), Some("")));
        let vendor = ["AuthenticAMD", "a", "GenuineIntel", "b", "c"];
        assert_eq!(of("cpuinfo_check", &vendor).as_deref(), Some("b"));
        assert_eq!(of("cpuinfo_check", &["^x", "a", "c"]).as_deref(), Some("c"));
        assert_eq!(of("cpuinfo_check", &["x(", "a"]), None);
    }

    #[test]
    fn what_runs_a_program_and_what_is_no_list_has_no_value() {
        for (name, arguments) in [("exec", ["id"]), ("virt_check", ["a"]), ("cpulist2hex", ["x"])] {
            assert_eq!(of(name, &arguments), None, "{name}");
        }
    }
}

//! The machine's apt sources (sources.list(5), both styles), and the same mirrors for another
//! Debian suite.
//!
//! Mirror, keyring and every other option are taken over; only suite, component and package type
//! are replaced. A source is recognised as Debian's own by its suite name and its `main` component.

use std::path::Path;

/// One stanza: where, and the fields that apply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// `URIs`.
    pub uris: Vec<String>,
    /// `Suites`.
    pub suites: Vec<String>,
    /// `Components`.
    pub components: Vec<String>,
    /// Every other field that binds any suite of this mirror, `Signed-By` above all. A value may
    /// span lines.
    pub options: Vec<(String, String)>,
}

/// Fields that choose what is fetched, and are chosen anew.
const CHOSEN: [&str; 9] =
    ["types", "uris", "suites", "components", "architectures", "languages", "targets", "enabled", "pdiffs"];
/// What a Debian suite may be called. Names of other distributions never match whole.
const CODENAMES: [&str; 14] = [
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "stretch",
    "experimental",
];
/// Sub-suites that exist for each release and may hold newer kernels.
const POCKETS: [&str; 3] = ["", "-updates", "-security"];

/// Parses the deb822 style (`*.sources`): stanzas apart by blank lines, `Key: value`, continuation
/// lines indented. Disabled stanzas and source-package stanzas are left out.
pub(crate) fn parse_deb822(text: &str) -> Vec<Source> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines
        .split(|line| line.trim().is_empty())
        .filter_map(|stanza| stanza_to_source(&fields(stanza)))
        .collect()
}

fn fields(stanza: &[&str]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in stanza {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    fields
}

fn stanza_to_source(fields: &[(String, String)]) -> Option<Source> {
    let get = |name: &str| {
        fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    let words =
        |name: &str| get(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let enabled = get("Enabled")
        .is_none_or(|value| !matches!(value.to_ascii_lowercase().as_str(), "no" | "false" | "0"));
    let options = fields
        .iter()
        .filter(|(key, _)| !CHOSEN.contains(&key.to_ascii_lowercase().as_str()))
        .cloned()
        .collect();
    (enabled && words("Types").iter().any(|word| word == "deb")).then(|| Source {
        uris: words("URIs"),
        suites: words("Suites"),
        components: words("Components"),
        options,
    })
}

/// Parses the one-line style (`sources.list`): `deb [option=value …] uri suite component…`.
pub(crate) fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(one_line).collect()
}

fn one_line(line: &str) -> Option<Source> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let rest = line.strip_prefix("deb")?.strip_prefix(|c: char| c.is_whitespace())?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (uri, suite) = (words.next()?, words.next()?);
    Some(Source {
        uris: vec![uri],
        suites: vec![suite],
        components: words.collect(),
        options: one_line_options(options),
    })
}

fn one_line_options(text: &str) -> Vec<(String, String)> {
    // The names differ from those of deb822 only in case, but for these, all of which choose what
    // is fetched.
    const CHOOSING: [&str; 4] = ["arch", "lang", "target", "pdiffs"];
    text.split_whitespace()
        .filter_map(|option| option.split_once('='))
        .filter(|(key, _)| !CHOOSING.contains(&key.trim_end_matches(['+', '-'])))
        // Several keyrings are joined by commas here and by blanks there.
        .map(|(key, value)| (title_case(key), value.replace(',', " ")))
        .collect()
}

fn title_case(key: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    key.split('-').filter(|part| !part.is_empty() && part.is_ascii()).map(word).collect::<Vec<_>>().join("-")
}

/// All sources of an apt configuration directory (`/etc/apt`). Unreadable files count as empty: apt
/// itself warns.
pub(crate) fn read_machine(etc_apt: &Path) -> Vec<Source> {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut sources = parse_one_line(&read(&etc_apt.join("sources.list")));
    let Ok(parts) = std::fs::read_dir(etc_apt.join("sources.list.d")) else { return sources };
    let mut parts: Vec<_> = parts.flatten().map(|entry| entry.path()).collect();
    parts.sort();
    for path in parts {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(parse_one_line(&read(&path))),
            Some("sources") => sources.extend(parse_deb822(&read(&path))),
            _ => {}
        }
    }
    sources
}

/// The Debian mirrors among `sources`, for another suite, as the text of a `.sources` file; empty
/// if there is none. Requests from each mirror only the sub-suites that the machine itself uses.
pub(crate) fn retarget(sources: &[Source], suite: &str, debian_arch: &str) -> String {
    let mut stanzas: Vec<String> = Vec::new();
    for source in sources {
        let suites = retarget_suites(source, suite);
        if suites.is_empty() || !source.components.iter().any(|component| component == "main") {
            continue;
        }
        let mut stanza = format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nArchitectures: {debian_arch}\nTargets: Packages\n",
            source.uris.join(" "),
            suites.join(" "),
        );
        for (key, value) in &source.options {
            stanza.extend([key, ": ", value, "\n"]);
        }
        if !stanzas.contains(&stanza) {
            stanzas.push(stanza);
        }
    }
    stanzas.join("\n")
}

fn retarget_suites(source: &Source, wanted: &str) -> Vec<String> {
    let pockets = source.suites.iter().filter_map(|suite| {
        POCKETS
            .into_iter()
            .find(|pocket| suite.strip_suffix(pocket).is_some_and(|base| CODENAMES.contains(&base)))
    });
    let mut suites: Vec<String> = pockets.map(|pocket| format!("{wanted}{pocket}")).collect();
    suites.dedup();
    suites
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
# the archive
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQENBF
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://other.example/node
Suites: nodistro
Components: main
";

    #[test]
    fn deb822_is_turned_to_another_suite() {
        let text = retarget(&parse_deb822(DEB822), "trixie", "arm64");
        assert_eq!(
            text,
            "\
Types: deb
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
Architectures: arm64
Targets: Packages
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://mirror.example/security
Suites: trixie-security
Components: main
Architectures: arm64
Targets: Packages
Signed-By: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQENBF
 -----END PGP PUBLIC KEY BLOCK-----
"
        );
    }

    #[test]
    fn what_we_write_we_can_read() {
        let first = retarget(&parse_deb822(DEB822), "trixie", "amd64");
        let again = retarget(&parse_deb822(&first), "trixie", "amd64");
        assert_eq!(first, again);
    }

    #[test]
    fn one_line_style() {
        let text = "\
# comment
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/a.gpg,/b.gpg check-valid-until=no] http://mirror.example/debian bookworm main # tail
deb\thttp://mirror.example/security bookworm-security main
deb https://other.example/apt cloud-sdk-bookworm main
deb [broken http://mirror.example/debian bookworm main
";
        let sources = parse_one_line(text);
        assert_eq!(sources.len(), 3);
        assert_eq!(
            sources[0].options,
            [("Signed-By".into(), "/a.gpg /b.gpg".into()), ("Check-Valid-Until".into(), "no".into())]
        );
        let turned = retarget(&sources, "bullseye", "amd64");
        assert!(
            turned.contains("Suites: bullseye\n") && turned.contains("Suites: bullseye-security\n"),
            "{turned}"
        );
        assert!(!turned.contains("other.example"), "{turned}");
    }

    #[test]
    fn no_debian_mirror_gives_nothing() {
        let ubuntu = parse_one_line("deb http://archive.ubuntu.example/ubuntu noble main universe\n");
        assert_eq!(retarget(&ubuntu, "trixie", "amd64"), "");
    }

    #[test]
    fn reads_both_styles_of_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sources.list.d")).unwrap();
        std::fs::write(dir.path().join("sources.list"), "deb http://a.example/debian trixie main\n").unwrap();
        std::fs::write(dir.path().join("sources.list.d/b.sources"), DEB822).unwrap();
        std::fs::write(
            dir.path().join("sources.list.d/c.list.save"),
            "deb http://c.example/debian sid main\n",
        )
        .unwrap();
        let uris: Vec<_> = read_machine(dir.path()).into_iter().flat_map(|source| source.uris).collect();
        assert_eq!(
            uris,
            [
                "http://a.example/debian",
                "http://mirror.example/debian",
                "http://mirror.example/security",
                "https://other.example/node"
            ]
        );
    }
}

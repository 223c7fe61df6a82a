//! The catalogue is whole. Every mechanism file parses and is named by its id; `requires` and
//! `conflicts` lead to other mechanisms; every event class it speaks of exists in `model`; the
//! event catalogue is one that `model` accepts, and every class in it has remedies that are
//! mechanisms, or a reason why there is none; so have labels.

use model::EventClass;
use model::events::EventCatalogue;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

const MECHANISMS: &str = "catalogue/mechanisms/";
const EVENTS: &str = "catalogue/events.toml";

/// Path below the repository to text.
type Files = BTreeMap<String, String>;

/// What is broken: where, what is there, what was expected.
#[derive(Debug)]
struct Violation {
    path: String,
    what: String,
}

impl Violation {
    fn file(path: &str, what: impl Into<String>, expected: &str) -> Self {
        Self { path: path.to_owned(), what: format!("{}; expected {expected}", what.into()) }
    }
}

#[test]
fn the_catalogue_is_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Files::new();
    for folder in ["catalogue", "catalogue/mechanisms"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.file_name().unwrap().to_str().unwrap();
                files.insert(format!("{folder}/{name}"), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(files.len() > 100, "{} files", files.len());
    let found = check(&files);
    assert!(found.is_empty(), "{found:#?}");
}

fn check(files: &Files) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut mechanisms = BTreeMap::new();
    for (path, text) in files {
        match text.parse::<Table>() {
            Err(error) => found.push(syntax(path, text, &error)),
            Ok(table) => {
                if let Some(stem) = path.strip_prefix(MECHANISMS).and_then(|f| f.strip_suffix(".toml")) {
                    found.extend(check_id(path, stem, &table));
                    mechanisms.insert(stem, (path, table));
                }
            }
        }
    }
    for (path, table) in mechanisms.values() {
        found.extend(check_references(path, table, |id| mechanisms.contains_key(id)));
        found.extend(check_classes(path, table));
    }
    match files.get(EVENTS) {
        Some(text) => found.extend(check_events(text, |id| mechanisms.contains_key(id))),
        None => found.push(Violation::file(EVENTS, "no such file", "the event catalogue")),
    }
    found
}

fn syntax(path: &str, text: &str, error: &toml::de::Error) -> Violation {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    Violation::file(&format!("{path}:{line}"), error.message().replace('\n', " "), "valid TOML")
}

fn check_id(path: &str, stem: &str, table: &Table) -> Option<Violation> {
    let id = table.get("id").and_then(Value::as_str);
    let what = format!("id is {}", id.map_or("missing".to_owned(), |id| format!("`{id}`")));
    (id != Some(stem)).then(|| Violation::file(path, what, &format!("`{stem}`, the name of the file")))
}

fn check_references(path: &str, table: &Table, known: impl Fn(&str) -> bool) -> Vec<Violation> {
    let named =
        ["requires", "conflicts"].into_iter().flat_map(|key| strings(table, key).map(move |id| (key, id)));
    named
        .filter(|(_, id)| !known(id))
        .map(|(key, id)| {
            Violation::file(path, format!("{key} `{id}`"), &format!("a file {MECHANISMS}{id}.toml"))
        })
        .collect()
}

fn check_classes(path: &str, table: &Table) -> Vec<Violation> {
    strings(table, "removes")
        .filter(|name| name.parse::<EventClass>().is_err())
        .map(|name| {
            let what = format!("removes names the event class `{name}`");
            Violation::file(path, what, "a class of crates/model/src/class.rs")
        })
        .collect()
}

/// A string or an array of strings.
fn strings<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let items = match table.get(key) {
        Some(Value::Array(items)) => items.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    items.iter().filter_map(Value::as_str)
}

fn check_events(text: &str, known: impl Fn(&str) -> bool) -> Vec<Violation> {
    let catalogue = match EventCatalogue::parse(EVENTS, text) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            return vec![Violation::file(
                EVENTS,
                error.to_string(),
                "what crates/model/src/events.rs accepts",
            )];
        }
    };
    let mut found = Vec::new();
    for class in EventClass::ALL {
        let Some(remedy) = catalogue.classes.get(class) else {
            found.push(Violation::file(EVENTS, format!("no [class.\"{class}\"]"), "remedies or why_none"));
            continue;
        };
        let reason = remedy.why_none.as_deref().is_some_and(|why| !why.trim().is_empty());
        if remedy.remedies.is_empty() && !reason {
            found.push(Violation::file(EVENTS, format!("empty [class.\"{class}\"]"), "remedies or why_none"));
        }
        let own = remedy.remedies.iter().map(|id| (class.to_string(), id));
        let by_label = remedy.by_label.iter().flat_map(|(label, ids)| {
            let whose = format!("{class} by {label}");
            ids.iter().map(move |id| (whose.clone(), id))
        });
        for (whose, id) in own.chain(by_label).filter(|(_, id)| !known(id)) {
            let what = format!("remedy of `{whose}` is `{id}`");
            found.push(Violation::file(EVENTS, what, &format!("a file {MECHANISMS}{id}.toml")));
        }
    }
    found
}

const TICK: (&str, &str) =
    ("catalogue/mechanisms/nohz-full.toml", "id = \"nohz-full\"\nremoves = [\"timer.tick\"]\n");

/// A whole event catalogue; the class `nmi` says what the test wants.
fn events(nmi: &str) -> String {
    let mut text = "[[event]]\nname = \"nmi:nmi_handler\"\nrole = \"instant\"\nclass = \"nmi\"\n".to_owned();
    for class in EventClass::ALL.iter().filter(|c| **c != EventClass::Nmi) {
        text.push_str("[class.\"");
        text.push_str(class.name());
        text.push_str("\"]\nremedies = [\"nohz-full\"]\n");
    }
    text + nmi
}

fn check_files(mechanism: Option<&str>, events: &str) -> Vec<String> {
    let mut files = vec![TICK, (EVENTS, events)];
    files.extend(mechanism.map(|text| ("catalogue/mechanisms/x.toml", text)));
    let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let short = |one: Violation| format!("{}: {}", one.path, one.what.split(';').next().unwrap());
    check(&files).into_iter().map(short).collect()
}

const FIRMWARE: &str = "[class.nmi]\nwhy_none = \"firmware\"\n";

#[test]
fn a_whole_catalogue_is_free() {
    let found = check_files(Some("id = \"x\"\nrequires = [\"nohz-full\"]\n"), &events(FIRMWARE));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn each_kind_of_hole_in_a_mechanism_is_reported() {
    for (text, what) in [
        ("id = \"y\"\n", "id is `y`"),
        ("title = \"y\"\n", "id is missing"),
        ("id = \"x\"\nrequires = [\"gone\"]\n", "requires `gone`"),
        ("id = \"x\"\nconflicts = \"gone\"\n", "conflicts `gone`"),
        ("id = \"x\"\nremoves = [\"tick\"]\n", "removes names the event class `tick`"),
    ] {
        assert_eq!(
            check_files(Some(text), &events(FIRMWARE)),
            [format!("catalogue/mechanisms/x.toml: {what}")],
            "{text}"
        );
    }
    let broken = check_files(Some("id = \"x\"\nrequires = [\n"), &events(FIRMWARE));
    assert!(broken.len() == 1 && broken[0].starts_with("catalogue/mechanisms/x.toml:2: "), "{broken:?}");
}

#[test]
fn each_kind_of_hole_in_the_event_catalogue_is_reported() {
    for (nmi, what) in [
        ("", "no [class.\"nmi\"]"),
        ("[class.nmi]\n", "empty [class.\"nmi\"]"),
        ("[class.nmi]\nwhy_none = \" \"\n", "empty [class.\"nmi\"]"),
        ("[class.nmi]\nremedies = [\"gone\"]\n", "remedy of `nmi` is `gone`"),
        (
            "[class.nmi]\nremedies = [\"nohz-full\"]\nby_label = { perf = [\"nohz-full\", \"gone\"] }\n",
            "remedy of `nmi by perf` is `gone`",
        ),
    ] {
        assert_eq!(check_files(None, &events(nmi)), [format!("{EVENTS}: {what}")], "{nmi}");
    }
    let unknown = check_files(None, &events("[class.nim]\nwhy_none = \"x\"\n"));
    assert!(unknown.len() == 1 && unknown[0].starts_with(EVENTS), "{unknown:?}");
    assert_eq!(
        check(&Files::from([(TICK.0.to_owned(), TICK.1.to_owned())])).len(),
        1,
        "no event catalogue at all"
    );
}

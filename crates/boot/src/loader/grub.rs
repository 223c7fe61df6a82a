//! GRUB whose menu is generated from `/etc/default/grub`.
//!
//! Debian's and Ubuntu's `grub-mkconfig` read `/etc/default/grub.d/*.cfg` afterwards: there the
//! words go into a file of our own, which takes the old ones out of the variables as the shell
//! reads them. Elsewhere the variables themselves are changed.

use super::form::Form;
use super::variables::{self, Unfit};
use super::{Loader, Place, Way, command};
use crate::edit::Edit;
use machine::Root;

/// The file that the generator reads first.
pub(crate) const DEFAULT: &str = "etc/default/grub";
/// What it reads afterwards.
const FOLDER: &str = "etc/default/grub.d";
/// Our own file.
pub(crate) const DROP_IN: &str = "etc/default/grub.d/90-stillcore.cfg";
/// Its first line.
pub(crate) const MARK: &str =
    "# Made by stillcore isolate persist; stillcore isolate persist --remove takes it away.";

pub(super) fn find(root: &Root) -> Option<Loader> {
    if !root.has(DEFAULT) {
        return None;
    }
    let has = |paths: &[&'static str]| paths.iter().copied().find(|path| root.has(path));
    let after = if let Some(update) = has(&["usr/sbin/update-grub", "sbin/update-grub"]) {
        vec![command(&[&format!("/{update}")])]
    } else if let Some(make) = has(&["usr/sbin/grub2-mkconfig", "usr/bin/grub2-mkconfig"]) {
        vec![command(&[&format!("/{make}"), "-o", "/boot/grub2/grub.cfg"])]
    } else if let Some(make) = has(&["usr/sbin/grub-mkconfig", "usr/bin/grub-mkconfig"]) {
        vec![command(&[&format!("/{make}"), "-o", "/boot/grub/grub.cfg"])]
    } else {
        Vec::new()
    };
    let mut next = vec![
        "every entry gets the words; should it not boot, press e in GRUB's menu, take them out and press F10"
            .to_owned(),
    ];
    if after.is_empty() {
        next.push("make GRUB's menu anew: grub-mkconfig -o where this machine has grub.cfg".to_owned());
    }
    let generator = ["usr/sbin/grub-mkconfig", "usr/bin/grub-mkconfig"];
    let reads_folder = generator.iter().any(|path| {
        root.maybe(path)
            .is_some_and(|text| text.contains("default/grub.d") || text.contains("/default/grub.d/"))
    });
    let way = if reads_folder || root.has(FOLDER) {
        Way::DropIn
    } else {
        Way::Files(vec![Place { path: DEFAULT.to_owned(), form: Form::Grub }])
    };
    Some(Loader { name: super::GRUB, way, generated: None, after, next })
}

/// The files that the generator reads before ours, and those after it. Error: one that this user
/// may not read; it is not an empty one.
fn texts(root: &Root) -> Result<[Vec<variables::Text>; 2], Unfit> {
    let unfit =
        |path: &str, reason: &dyn ToString| Unfit { path: path.to_owned(), reason: reason.to_string() };
    if root.has(FOLDER)
        && let Err(error) = std::fs::read_dir(root.at(FOLDER))
    {
        return Err(unfit(FOLDER, &error));
    }
    let others = root.glob(&format!("{FOLDER}/*.cfg")).into_iter().filter(|path| path != DROP_IN);
    let (before, after): (Vec<_>, Vec<_>) = others.partition(|path| path.as_str() < DROP_IN);
    let read = |path: String| match root.text(&path) {
        Ok(text) => Ok((path, text.unwrap_or_default())),
        Err(error) => Err(unfit(&path, &error)),
    };
    let all = |paths: Vec<String>| paths.into_iter().map(read).collect::<Result<Vec<_>, _>>();
    Ok([all([vec![DEFAULT.to_owned()], before].concat())?, all(after)?])
}

/// The variables for every entry and for those that are no rescue, without our own file.
pub(crate) fn values(root: &Root) -> Result<[String; 2], Unfit> {
    variables::read(&texts(root)?.concat())
}

/// Whether our own file has the last word on these parameters.
pub(crate) fn has_last_word(root: &Root, edits: &[Edit]) -> Result<(), Unfit> {
    let names: Vec<_> = edits.iter().map(|edit| edit.name.as_str()).collect();
    variables::overruled(&texts(root)?[1], &names)
}

/// The text of our own file. The shell takes words of these names out of both variables, then adds
/// the new ones.
pub(crate) fn drop_in(edits: &[Edit]) -> String {
    let (function, words) = without_words(edits);
    format!(
        "{MARK}\n\
         {function}\
         GRUB_CMDLINE_LINUX=\"$(stillcore_without \"$GRUB_CMDLINE_LINUX\") {words}\"\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"$(stillcore_without \"$GRUB_CMDLINE_LINUX_DEFAULT\")\"\n"
    )
}

/// A function of the shell that takes words of these names out of its argument, and the new words
/// as they stand within double quotes.
pub(super) fn without_words(edits: &[Edit]) -> (String, String) {
    let names: Vec<_> = edits.iter().map(|edit| pattern(&edit.name)).collect();
    let words: Vec<_> = edits.iter().flat_map(|edit| edit.new.iter().map(String::as_str)).collect();
    let function = format!(
        "stillcore_without() {{ printf ' %s\\n' \"$1\" | sed -E ':a; \
         s/[[:space:]]({})(=(\"[^\"]*\"|[^[:space:]\"])*)?([[:space:]]|$)/\\4/; ta; s/^ //'; }}\n",
        names.join("|"),
    );
    (function, escaped(&words.join(" ")))
}

/// A name for `sed -E`, in both spellings.
fn pattern(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == '_' || c == '-' {
                "[-_]".to_owned()
            } else if c == '.' {
                "\\.".to_owned()
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// For double quotes of the shell.
fn escaped(words: &str) -> String {
    words.chars().flat_map(|c| "\\\"$`".contains(c).then_some('\\').into_iter().chain([c])).collect()
}

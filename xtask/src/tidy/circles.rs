//! Rule: modules of a crate use one another in one direction. A circle is allowed between a module
//! and its own children only.
//!
//! Arrows are the paths in a file's tokens: `use` trees, and paths that begin with `crate`,
//! `super`, `self` or the name of a child module, inside macros too. A path leads to the longest
//! module that exists. Unit tests may look anywhere.

use super::Violation;
use crate::repo::Repo;
use crate::tokens::{behind_item, is, is_cfg_test};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// The place of a module in its crate: `["spans", "cpu"]`; empty for the root.
type Module = Vec<String>;
/// By module, those that it uses.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

pub(super) fn check(repo: &Repo) -> Vec<Violation> {
    let found = in_circles(repo).into_values();
    let what = |circle: &[String]| format!("a circle of modules: {}", circle.join(", "));
    found.map(|(path, circle)| Violation::file(&path, what(&circle), "arrows one way")).collect()
}

/// By `crate::module`, the file and the other modules of its circle.
fn in_circles(repo: &Repo) -> BTreeMap<String, (String, Vec<String>)> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, (&str, &str)>> = BTreeMap::new();
    for (path, text) in repo.rust() {
        let Some((name, inside)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        if let Some(module) = module_of(inside) {
            crates.entry(name).or_default().insert(module, (path, text));
        }
    }
    let mut found = BTreeMap::new();
    for (name, files) in crates {
        let arrows: Arrows = files
            .iter()
            .map(|(module, (_, text))| (module.clone(), used(module, text, &|to| files.contains_key(to))))
            .collect();
        for circle in circles(&arrows) {
            let names: Vec<String> =
                circle.iter().map(|module| format!("{name}::{}", module.join("::"))).collect();
            for (module, whole) in circle.iter().zip(&names) {
                found.insert(whole.clone(), (files[module].0.to_owned(), names.clone()));
            }
        }
    }
    found
}

/// `spans/cpu.rs`, `spans/mod.rs`; `None` for files of tests.
fn module_of(inside: &str) -> Option<Module> {
    let mut parts: Module = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        parts.pop();
    }
    (!parts.iter().any(|part| part == "tests")).then_some(parts)
}

/// The modules that a file uses, without its own parent and children.
fn used(module: &Module, text: &str, exists: &dyn Fn(&Module) -> bool) -> BTreeSet<Module> {
    let Ok(tokens) = text.parse::<TokenStream>() else { return BTreeSet::new() };
    let mut paths = Vec::new();
    paths_in(tokens, &mut paths);
    let leads_to = paths.iter().filter_map(|path| resolve(module, path, exists));
    let is_family = |to: &Module| {
        to.starts_with(module) && to.len() <= module.len() + 1
            || module.starts_with(to) && module.len() == to.len() + 1
    };
    leads_to.filter(|to| !is_family(to)).collect()
}

/// The module that a path leads to; `None` for what is outside the crate.
fn resolve(module: &Module, path: &[String], exists: &dyn Fn(&Module) -> bool) -> Option<Module> {
    let mut rest = path.iter().map(String::as_str).peekable();
    let mut at = module.clone();
    match rest.peek().copied()? {
        "crate" => {
            rest.next();
            at.clear();
        }
        "self" => {
            rest.next();
        }
        "super" => {
            while rest.next_if_eq(&"super").is_some() {
                at.pop();
            }
        }
        child => {
            let below: Module = at.iter().cloned().chain([child.to_owned()]).collect();
            if !exists(&below) {
                return None;
            }
        }
    }
    for part in rest {
        at.push(part.to_owned());
        if !exists(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// Every path in some tokens; unit tests are left out.
fn paths_in(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '#' && is_cfg_test(tokens.get(at + 1)) => {
                at = behind_item(&tokens, at + 2);
                continue;
            }
            TokenTree::Ident(word) if word == "use" => {
                let end =
                    tokens[at..].iter().position(|token| is(token, ';')).map_or(tokens.len(), |n| at + n);
                use_tree(&tokens[at + 1..end], &[], paths);
                at = end;
            }
            TokenTree::Ident(word) => {
                let mut path = vec![word.to_string()];
                while let (Some(a), Some(b), Some(TokenTree::Ident(next))) =
                    (tokens.get(at + 1), tokens.get(at + 2), tokens.get(at + 3))
                    && is(a, ':')
                    && is(b, ':')
                {
                    path.push(next.to_string());
                    at += 3;
                }
                if path.len() > 1 {
                    paths.push(path);
                }
            }
            TokenTree::Group(group) => paths_in(group.stream(), paths),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

/// The paths of what stands between `use` and `;`, or of one branch of it.
fn use_tree(tokens: &[TokenTree], before: &[String], paths: &mut Vec<Vec<String>>) {
    let mut path = before.to_vec();
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "as" => break,
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                inside.split(|token| is(token, ',')).for_each(|branch| use_tree(branch, &path, paths));
                return;
            }
            _ => {}
        }
    }
    paths.push(path);
}

/// The strongly connected parts of more than one module (Tarjan, SIAM J. Comput. 1 (1972)), by
/// reachability: there are some hundred modules a crate.
fn circles(arrows: &Arrows) -> Vec<Vec<Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        arrows.keys().map(|from| (from, reachable(from, arrows))).collect();
    let mut left: BTreeSet<&Module> = arrows.keys().collect();
    let mut all = Vec::new();
    while let Some(first) = left.pop_first() {
        let circle: Vec<&Module> = left
            .iter()
            .copied()
            .filter(|one| reach[first].contains(one) && reach[one].contains(first))
            .collect();
        left.retain(|one| !circle.contains(one));
        if !circle.is_empty() {
            all.push([first].into_iter().chain(circle).cloned().collect());
        }
    }
    all
}

fn reachable<'a>(from: &'a Module, arrows: &'a Arrows) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = arrows.get(module).into_iter().flatten();
        open.extend(next.filter(|to| seen.insert(*to)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        in_circles(&Repo::of(files)).into_keys().collect()
    }

    const ROOT: (&str, &str) = ("crates/x/src/lib.rs", "mod a;\nmod b;\n");

    #[test]
    fn a_circle_is_found_however_the_path_is_written() {
        let back = ("crates/x/src/b.rs", "use crate::{a::One, std::Two};");
        for text in
            ["use super::b::Three;", "fn f() { crate::b::g(); }", "fn f() { print!(\"{}\", super::b::G) }"]
        {
            assert_eq!(found(&[ROOT, back, ("crates/x/src/a.rs", text)]), ["x::a", "x::b"], "{text}");
        }
        assert_eq!(check(&Repo::of(&[ROOT, back, ("crates/x/src/a.rs", "use super::b;")])).len(), 2);
    }

    #[test]
    fn one_way_is_no_circle_and_tests_and_words_are_none() {
        let back = ("crates/x/src/b.rs", "use crate::a::One;");
        for text in [
            "// use crate::b;",
            "const B: &str = \"crate::b::x\";",
            "#[cfg(test)]\nmod tests { use crate::b::One; }",
            "use other::b::One;",
        ] {
            assert_eq!(found(&[ROOT, back, ("crates/x/src/a.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_module_and_its_children_may_use_one_another_and_cousins_may_not() {
        let parent = ("crates/x/src/a/mod.rs", "mod one;\nmod two;\npub use one::One;");
        let one = ("crates/x/src/a/one.rs", "use super::Other;");
        assert_eq!(found(&[ROOT, parent, one]), [""; 0]);
        let [one, two] = [
            ("crates/x/src/a/one.rs", "use super::two::Two;"),
            ("crates/x/src/a/two.rs", "use super::one::One;"),
        ];
        assert_eq!(found(&[ROOT, parent, one, two]), ["x::a::one", "x::a::two"]);
    }
}

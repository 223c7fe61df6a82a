//! Texts against their own numbers, and statements put together from their parts.

use super::*;
use crate::experiment::{Judgement, Published};
use std::collections::BTreeMap;

const NUMBERS: &str =
    "[p]\nipi = { oe = 6, stock = 198, rt = 14 }\nmax = { a = 153, b = 391 }\nrow = [59, 15, 391]\n";

fn numbers() -> Published {
    Published::from_toml(NUMBERS).unwrap()
}

fn listed(rest: &str) -> Result<Statements, String> {
    let head = "[[statement]]\nid = \"p.1\"\npaper = \"p\"\nwhere = \"I\"\nquote = \"q\"\nkind = \"order\"\nof = \"count\"\n\
                quantity = \"x\"\ngroups = \"a < b\"\nvalue = \"1\"\n";
    Statements::from_toml(&format!("{head}{rest}"), &numbers()).map_err(|fault| fault.to_string())
}

fn finding(own: &str) -> OwnFinding {
    listed(&format!("[[statement.own]]\nsays = \"s\"\n{own}")).unwrap().all[0].own[0].judged(&numbers()).0
}

#[test]
fn a_text_stands_against_its_own_numbers_and_counts_are_counts() {
    assert_eq!(finding("rising = [\"p.max.a\", \"p.max.b\"]"), OwnFinding::Stands);
    assert_eq!(finding("rising = [\"p.max.b\", \"p.max.a\"]"), OwnFinding::Contradicted);
    assert_eq!(finding("rising = [\"p.row\"]"), OwnFinding::Contradicted);
    assert_eq!(finding("of = \"p.row\"\nat_most = 400"), OwnFinding::Stands);
    assert_eq!(finding("ratio = [\"p.max.b\", \"p.max.a\"]\nat_least = 2\nat_most = 3"), OwnFinding::Stands);
    assert_eq!(finding("ratio = [\"p.max.b\", \"p.max.a\"]\nat_least = 3"), OwnFinding::Contradicted);
    assert_eq!(finding("rising = [\"p.ipi.rt\", \"p.ipi.stock\"]\ncounts = true"), OwnFinding::Shown);
    assert_eq!(finding("rising = [\"p.ipi.oe\", \"p.ipi.rt\"]\ncounts = true"), OwnFinding::NotShown);
    assert_eq!(finding("rising = [\"p.ipi.stock\", \"p.ipi.rt\"]\ncounts = true"), OwnFinding::Refuted);
}

#[test]
fn what_is_wrong_with_a_comparison_is_said_with_its_statement() {
    for (own, wanted) in [
        ("of = \"p.no\"\nat_most = 1", "names nothing"),
        ("of = \"p.row\"", "expected lists of one length, and bounds"),
        ("rising = [\"p.row\", \"p.max.a\"]", "expected lists of one length"),
        ("rising = [\"p.max.a\"]\nof = \"p.max.a\"", "expected one of"),
    ] {
        let why = listed(&format!("[[statement.own]]\nsays = \"s\"\n{own}")).unwrap_err();
        assert!(why.contains("p.1") && why.contains(wanted), "{why}");
    }
}

#[test]
fn a_statement_holds_where_all_its_parts_do_and_kernels_are_kept_apart() {
    let list = listed("").unwrap();
    let claims = BTreeMap::from([("p.1".to_owned(), vec!["e".to_owned()])]);
    let found = |condition: &str, judgement| Found {
        statement: "p.1".to_owned(),
        experiment: "e".to_owned(),
        condition: condition.to_owned(),
        judgement,
        why: "w".to_owned(),
    };
    let open = answers(&list, &numbers(), &claims, &[]);
    assert_eq!(open.statements[0].why_open().unwrap(), "not run: e");
    assert_eq!(open.papers["p"], Tally { all: 1, not_run: 1, ..Tally::default() });
    let some = [
        found("6.1", Judgement::Agrees),
        found("6.1", Judgement::Inconclusive),
        found("5.10", Judgement::Agrees),
        found("5.10", Judgement::Differs),
    ];
    let answered = answers(&list, &numbers(), &claims, &some);
    let words: Vec<_> =
        answered.statements[0].verdicts.iter().map(|one| (one.condition.as_str(), one.word)).collect();
    assert_eq!(words, [("5.10", "differs"), ("6.1", "inconclusive")]);
    assert_eq!(answered.papers["p"].decided, 1);
}

//! Tables for narrow windows, where a row becomes a card: the name of its column stands in front of
//! each cell. The names are rules of the page's style sheet, one a column, so that a long table
//! does not repeat them.

use std::fmt::Write;

const STYLE_END: &str = "</style>";

/// The page with a number on each of its tables, and the names of their columns in its style sheet.
/// What has no style sheet is a part of a page, and stays as it is.
pub(super) fn labelled(page: String) -> String {
    let Some(style_end) = page.find(STYLE_END) else { return page };
    let (head, body) = page.split_at(style_end);
    let mut numbered = String::with_capacity(body.len() + 1024);
    let mut rules = String::new();
    let mut rest = body;
    let mut number = 0;
    while let Some(at) = rest.find("<table") {
        let (before, table) = rest.split_at(at);
        number += 1;
        let _ = write!(numbered, "{before}<table id=\"t{number}\"");
        rest = &table["<table".len()..];
        let header = rest.split("</thead>").next().filter(|header| header.len() < rest.len());
        for (column, name) in columns(header.unwrap_or_default()).iter().enumerate() {
            let _ = write!(rules, "#t{number} td:nth-child({}):before{{content:\"{name}\"}}", column + 1);
        }
    }
    numbered.push_str(rest);
    if rules.is_empty() { page } else { format!("{head}@media (max-width:700px){{{rules}}}\n{numbered}") }
}

/// Names of the columns, each as the string of a style sheet.
fn columns(header: &str) -> Vec<String> {
    let cells = header.split("scope=\"col\"").skip(1);
    let name = |cell: &str| {
        let inside = cell.split_once('>').map_or("", |(_, inside)| inside);
        escaped(&text(inside.split("</th>").next().unwrap_or_default()))
    };
    cells.map(name).collect()
}

/// The text of some markup.
fn text(markup: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for letter in markup.chars() {
        match letter {
            '<' => inside = true,
            '>' => inside = false,
            letter if !inside => plain.push(letter),
            _ => {}
        }
    }
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&amp;", "&")];
    entities.iter().fold(plain, |text, (entity, letter)| text.replace(entity, letter))
}

/// Letters and digits as they are, everything else by its number (CSS Syntax Level 3, 4.3.7): names
/// may be of others.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == ' ' {
            safe.push(letter);
        } else {
            let _ = write!(safe, "\\{:x} ", u32::from(letter));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_of_each_table_has_its_name_once() {
        let table = "<table class=\"sort\"><thead><tr><th scope=\"col\">phase</th><th scope=\"col\" class=\"l\">\
                     <button>p99</button></th></tr></thead><tbody><tr><th scope=\"row\">idle</th><td>1</td></tr></tbody></table>";
        let page = labelled(format!("<style>a{{}}</style><p>a &lt; b</p>{table}{table}"));
        assert!(page.contains("#t1 td:nth-child(2):before{content:\"p99\"}"), "{page}");
        assert!(page.contains("<table id=\"t2\" class=\"sort\">") && page.matches("content:").count() == 4);
        assert!(page.contains("a{}@media (max-width:700px){"), "{page}");
    }

    #[test]
    fn a_hostile_name_of_a_column_ends_neither_string_nor_style() {
        let header = "<thead><tr><th scope=\"col\">\\&quot;}</style>&lt;/style&gt;é</th></tr></thead>";
        let page = labelled(format!("<style></style><table>{header}</table>"));
        let rule = page.split("content:\"").nth(1).unwrap().split('}').next().unwrap();
        assert_eq!(rule, "\\5c \\22 \\7d \\3c \\2f style\\3e \\e9 \"");
    }

    #[test]
    fn parts_and_pages_without_tables_stay_as_they_are() {
        for page in ["", "<table><thead></thead></table>", "<style></style><p>5"] {
            assert_eq!(labelled(page.to_owned()), page);
        }
    }
}

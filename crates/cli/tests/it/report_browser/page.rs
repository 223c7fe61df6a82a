//! What a page looks like to a reader, read from the browser's own layout (so it works with scripts
//! off), and what is wrong with it.

use std::path::Path;

use serde_json::{Value, json};

use super::webdriver::Browser;

/// One laid-out page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Headings in order: level and text.
    pub headings: Vec<(u8, String)>,
    /// Width and height of each chart, in CSS pixels.
    pub charts: Vec<(f64, f64)>,
    /// Height of each `<section>`.
    pub sections: Vec<f64>,
    /// All text that is laid out, in order, one line a text box.
    pub text: String,
    /// Width of the content and of the window.
    pub widths: (f64, f64),
    /// Where the opening ends, from the top of the page; 0 without one.
    pub opening_end: f64,
    /// Texts of one chart that lie over each other.
    pub overlaps: Vec<String>,
    /// Tables that reach beyond the right edge of the window, by their captions.
    pub wide_tables: Vec<String>,
    /// Console lines.
    pub console: Vec<String>,
    /// Addresses asked for, the page's own excepted.
    pub requests: Vec<String>,
}

impl Page {
    /// Opens `file` and reads the page.
    pub(crate) fn read(browser: &Browser, file: &Path) -> Self {
        browser.open(file);
        let snapshot = browser.devtools("DOMSnapshot.captureSnapshot", &json!({"computedStyles": []}));
        let nodes = Nodes::of(&snapshot);
        let metrics = browser.devtools("Page.getLayoutMetrics", &json!({}));
        let own = |url: &String| url.starts_with("file://") || url.starts_with("data:");
        Self {
            headings: nodes.headings(),
            charts: nodes.laid_out("svg").into_iter().map(|b| (b[2], b[3])).collect(),
            sections: nodes.boxes("SECTION").into_iter().map(|b| b[3]).collect(),
            text: nodes.text(),
            widths: (
                metrics["cssContentSize"]["width"].as_f64().unwrap(),
                metrics["cssLayoutViewport"]["clientWidth"].as_f64().unwrap(),
            ),
            opening_end: nodes.opening_end(),
            overlaps: nodes.overlaps(),
            wide_tables: nodes
                .wide_tables(metrics["cssLayoutViewport"]["clientWidth"].as_f64().unwrap_or(f64::MAX)),
            console: browser.console(),
            requests: browser.requests().into_iter().filter(|url| !own(url)).collect(),
        }
    }

    /// Everything a reader would trip over, one line each.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        let titles = self.headings.iter().filter(|(level, _)| *level == 1).count();
        if titles != 1 {
            found.push(format!("{titles} first-level headings; expected one"));
        }
        for (level, text) in self.headings.iter().filter(|(_, text)| text.trim().is_empty()) {
            found.push(format!("a heading of level {level} without text: {text:?}"));
        }
        if self.sections.is_empty() {
            found.push("no section".to_owned());
        }
        found.extend(self.sections.iter().filter(|h| **h < 1.0).map(|h| format!("a section {h} high")));
        if self.charts.is_empty() {
            found.push("no chart".to_owned());
        }
        let flat = self.charts.iter().filter(|(w, h)| *w < 8.0 || *h < 4.0);
        found.extend(flat.map(|(w, h)| format!("a chart of {w} x {h}")));
        if !self.text.contains(|c: char| c.is_ascii_digit()) {
            found.push("no number".to_owned());
        }
        let words = self.text.split(|c: char| !c.is_alphanumeric());
        let leaks = words.filter(|word| matches!(*word, "NaN" | "undefined" | "Infinity"));
        found.extend(leaks.map(|word| format!("the text {word:?}")));
        found.extend(
            ["{{", "{%", "}}"].iter().filter(|m| self.text.contains(**m)).map(|m| format!("the text {m:?}")),
        );
        if self.widths.0 > self.widths.1 + 1.0 {
            found.push(format!("content {} wide in a window of {}", self.widths.0, self.widths.1));
        }
        found.extend(self.overlaps.iter().map(|two| format!("labels over each other: {two}")));
        found.extend(self.console.iter().map(|line| format!("console: {line}")));
        found.extend(self.requests.iter().map(|url| format!("request: {url}")));
        found
    }
}

/// The whole page as a picture, PNG.
pub(crate) fn picture(browser: &Browser) -> Vec<u8> {
    let metrics = browser.devtools("Page.getLayoutMetrics", &json!({}));
    let size = &metrics["cssContentSize"];
    let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
    let asked = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let answer = browser.devtools("Page.captureScreenshot", &asked);
    base64(answer["data"].as_str().expect("a picture"))
}

/// RFC 4648 base64.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for digit in text.bytes().filter_map(|b| DIGITS.iter().position(|d| *d == b)) {
        bits = bits << 6 | digit as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

/// The arrays of a DOM snapshot, resolved: one entry a node.
struct Nodes {
    name: Vec<String>,
    value: Vec<String>,
    parent: Vec<Option<usize>>,
    /// x, y, width, height, where the node is laid out.
    bounds: Vec<Option<[f64; 4]>>,
}

impl Nodes {
    fn of(snapshot: &Value) -> Self {
        let strings = snapshot["strings"].as_array().unwrap();
        let string = |index: &Value| -> String {
            let at = index.as_u64().and_then(|at| strings.get(at as usize));
            at.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let document = &snapshot["documents"][0];
        let nodes = &document["nodes"];
        let texts = |key: &str| nodes[key].as_array().unwrap().iter().map(string).collect::<Vec<_>>();
        let parents = nodes["parentIndex"].as_array().unwrap();
        let mut bounds = vec![None; parents.len()];
        let layout = &document["layout"];
        for (node, rect) in
            layout["nodeIndex"].as_array().unwrap().iter().zip(layout["bounds"].as_array().unwrap())
        {
            let edge = |at: usize| rect[at].as_f64().unwrap_or(0.0);
            bounds[node.as_u64().unwrap() as usize].get_or_insert([edge(0), edge(1), edge(2), edge(3)]);
        }
        Self {
            name: texts("nodeName"),
            value: texts("nodeValue"),
            parent: parents.iter().map(|p| p.as_u64().map(|p| p as usize)).collect(),
            bounds,
        }
    }

    /// The boxes of every node of this name; a node that is not laid out has no size.
    fn boxes(&self, name: &str) -> Vec<[f64; 4]> {
        let named = (0..self.name.len()).filter(|&at| self.name[at] == name && !self.hidden(at));
        named.map(|at| self.bounds[at].unwrap_or([0.0; 4])).collect()
    }

    /// The boxes of those that are laid out: what is folded is not, nor is a drawing for wide
    /// windows in narrow ones.
    fn laid_out(&self, name: &str) -> Vec<[f64; 4]> {
        let named = (0..self.name.len()).filter(|&at| self.name[at] == name);
        named.filter_map(|at| self.bounds[at]).collect()
    }

    /// Inside something that is folded away or only shown without scripts.
    fn hidden(&self, at: usize) -> bool {
        let mut node = self.parent[at];
        while let Some(here) = node {
            if matches!(self.name[here].as_str(), "DETAILS" | "NOSCRIPT" | "TEMPLATE") {
                return true;
            }
            node = self.parent[here];
        }
        false
    }

    /// The lower edge of the first section, which is the opening.
    fn opening_end(&self) -> f64 {
        self.boxes("SECTION").first().map_or(0.0, |one| one[1] + one[3])
    }

    /// Captions of tables wider than the window.
    fn wide_tables(&self, window: f64) -> Vec<String> {
        let tables = (0..self.name.len()).filter(|&at| self.name[at] == "TABLE");
        let beyond = tables.filter(|&at| self.bounds[at].is_some_and(|b| b[0] + b[2] > window + 1.0));
        let caption = |table: usize| {
            (table..self.name.len()).find(|&at| self.name[at] == "CAPTION" && self.is_below(at, table))
        };
        beyond.map(|table| caption(table).map_or_else(String::new, |at| self.below(at))).collect()
    }

    /// Pairs of texts of the same chart whose boxes share more than a hair.
    fn overlaps(&self) -> Vec<String> {
        /// By how much boxes may reach into each other: a label's outline and the room above and
        /// below letters belong to its box. CSS pixels, and a part of the lower box's height.
        const ACROSS: f64 = 4.0;
        const UPRIGHT: f64 = 0.3;
        let charts = (0..self.name.len()).filter(|&at| self.name[at] == "svg" && self.bounds[at].is_some());
        let mut found = Vec::new();
        for chart in charts {
            let texts: Vec<(usize, [f64; 4])> = (chart..self.name.len())
                .filter(|&at| self.name[at] == "text" && self.is_below(at, chart))
                .filter_map(|at| Some((at, self.bounds[at]?)))
                .collect();
            for (index, (one, a)) in texts.iter().enumerate() {
                for (other, b) in &texts[index + 1..] {
                    let across = (a[0] + a[2]).min(b[0] + b[2]) - a[0].max(b[0]);
                    let upright = (a[1] + a[3]).min(b[1] + b[3]) - a[1].max(b[1]);
                    if across > ACROSS && upright > UPRIGHT * a[3].min(b[3]) {
                        found.push(format!(
                            "{:?} {a:.1?} and {:?} {b:.1?}",
                            self.below(*one),
                            self.below(*other)
                        ));
                    }
                }
            }
        }
        found
    }

    fn is_below(&self, mut at: usize, root: usize) -> bool {
        while let Some(parent) = self.parent[at] {
            if parent == root {
                return true;
            }
            at = parent;
        }
        false
    }

    fn headings(&self) -> Vec<(u8, String)> {
        let level = |name: &str| match name.as_bytes() {
            [b'H', digit @ b'1'..=b'6'] => Some(digit - b'0'),
            _ => None,
        };
        (0..self.name.len()).filter_map(|at| Some((level(&self.name[at])?, self.below(at)))).collect()
    }

    /// The text of all nodes below one.
    fn below(&self, root: usize) -> String {
        let texts = (0..self.name.len()).filter(|&at| self.name[at] == "#text" && self.is_below(at, root));
        texts.map(|at| self.value[at].trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    fn text(&self) -> String {
        let shown = (0..self.name.len()).filter(|&at| self.name[at] == "#text" && self.bounds[at].is_some());
        shown.map(|at| self.value[at].trim()).filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

//! Rows under each other on one horizontal axis: a name, a mark on the axis, and words. On a desk
//! the three stand side by side; in a hand the texts stand above the mark, so that both are as wide
//! as the window.

use super::escape;
use super::frame::{Chart, FULL, px};

/// Where the chart is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// A row of the page on a desk.
    Desk,
    /// The width of a phone.
    Hand,
}

/// Width of a chart in a hand, in its own units: a phone shows them about one to one.
const HAND: f64 = 400.0;
/// Width of a letter.
const LETTER: f64 = 7.0;
/// Height of a row on a desk, of a line of text in a hand, and of the mark under it.
const ROW: f64 = 24.0;
const LINE: f64 = 18.0;
const MARK: f64 = 20.0;
/// Letters of a name and of words beside the axis.
const NAME: usize = 44;
const WORDS: usize = 50;

/// The texts of a row.
pub(super) struct RowText<'a> {
    pub(super) name: &'a str,
    pub(super) words: &'a str,
    /// Colour of the words, by the name of a class.
    pub(super) class: &'a str,
}

/// A chart of rows under construction: texts are drawn, marks are not.
pub(super) struct Rows {
    pub(super) chart: Chart,
    middles: Vec<f64>,
}

impl Rows {
    pub(super) fn new(id: &str, title: &str, about: &str, texts: &[RowText<'_>], room: Room) -> Self {
        match room {
            Room::Desk => desk(id, title, about, texts),
            Room::Hand => hand(id, title, about, texts),
        }
    }

    /// Where the marks of a row are.
    pub(super) fn middle(&self, row: usize) -> f64 {
        self.middles.get(row).copied().unwrap_or_default()
    }

    /// A line from end to end with strokes at both.
    pub(super) fn interval(&mut self, row: usize, class: &str, [low, high]: [f64; 2]) {
        let y = self.middle(row);
        let (low, high) = (px(low), px(high));
        let (up, down) = (px(y - 4.0), px(y + 4.0));
        let path = format!("M{low} {}H{high}M{low} {up}V{down}M{high} {up}V{down}", px(y));
        self.chart.raw(&format!("<path class=\"iv {class}\" d=\"{path}\"/>"));
    }

    /// A dot.
    pub(super) fn point(&mut self, row: usize, class: &str, x: f64) {
        let y = px(self.middle(row));
        self.chart.raw(&format!("<circle class=\"pt {class}\" cx=\"{}\" cy=\"{y}\" r=\"4\"/>", px(x)));
    }
}

fn desk(id: &str, title: &str, about: &str, texts: &[RowText<'_>]) -> Rows {
    let room = |of: fn(&RowText<'_>) -> usize, most: usize, least: f64| {
        let letters = texts.iter().map(of).max().unwrap_or(0).min(most);
        (letters as f64 * LETTER + 24.0).max(least)
    };
    let left = room(|text| text.name.chars().count(), NAME, 120.0);
    let right = room(|text| text.words.chars().count(), WORDS, 80.0);
    let mut chart = Chart::new(id, title, about, [FULL, 62.0 + ROW * texts.len() as f64], left);
    chart.area[1] = FULL - right;
    let [from, to, top, _] = chart.area;
    let mut middles = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let y = top + ROW * (at as f64 + 0.5);
        chart.text(from - 10.0, y + 4.0, "t e", &cut(text.name, NAME));
        words(&mut chart, to + 14.0, y + 4.0, text.class, &cut(text.words, WORDS));
        middles.push(y);
    }
    Rows { chart, middles }
}

fn hand(id: &str, title: &str, about: &str, texts: &[RowText<'_>]) -> Rows {
    let line = ((HAND - 20.0) / LETTER - 1.0) as usize;
    let fits = |text: &RowText<'_>| text.name.chars().count() + text.words.chars().count() + 3 <= line;
    let height = |text: &RowText<'_>| if fits(text) { LINE + MARK } else { 2.0 * LINE + MARK };
    let all: f64 = texts.iter().map(height).sum();
    let mut chart = Chart::new(id, title, about, [HAND, 66.0 + all], 12.0);
    let [from, to, top, _] = chart.area;
    let (mut y, mut middles) = (top, Vec::new());
    for text in texts {
        chart.text(from, y + 12.0, "n halo", &cut(text.name, line));
        if fits(text) {
            words(&mut chart, to, y + 12.0, &format!("{} e", text.class), text.words);
        } else {
            words(&mut chart, from, y + 12.0 + LINE, text.class, &cut(text.words, line));
        }
        y += height(text);
        middles.push(y - MARK / 2.0);
    }
    Rows { chart, middles }
}

fn words(chart: &mut Chart, x: f64, y: f64, class: &str, words: &str) {
    let (x, y) = (px(x), px(y));
    chart.raw(&format!("<text class=\"t halo {class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(words)));
}

/// At most so many letters.
fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some(_) => text.chars().take(letters - 1).chain(['\u{2026}']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_room_on_a_desk_and_lines_of_their_own_in_a_hand() {
        let long = "w".repeat(200);
        let texts =
            [("p99", "worse"), ("a much longer name of a figure", "cannot be distinguished"), (&long, &long)];
        let texts = texts.map(|(name, words)| RowText { name, words, class: "dim" });
        let of = |room| Rows::new("r", "t", "d", &texts, room);
        let desk = of(Room::Desk);
        assert!(desk.chart.area[1] - desk.chart.area[0] > 300.0, "{:?}", desk.chart.area);
        let hand = of(Room::Hand);
        let apart = |rows: &Rows| rows.middle(1) - rows.middle(0);
        assert!((apart(&desk) - ROW).abs() < 1e-9 && (apart(&hand) - 2.0 * LINE - MARK).abs() < 1e-9);
        let svg = hand.chart.finish();
        assert!(svg.contains("viewBox=\"0 0 400 ") && svg.contains('\u{2026}'), "{svg}");
    }
}

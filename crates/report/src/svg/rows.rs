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
pub(super) const HAND: f64 = 400.0;
/// Width of a letter.
const LETTER: f64 = 7.0;
/// Height of a row on a desk, of a line of text in a hand, and of the mark under it.
const ROW: f64 = 24.0;
const LINE: f64 = 18.0;
const MARK: f64 = 20.0;
/// Room above the rows, and below them that of an axis with its name.
const HEAD: f64 = 14.0;
pub(super) const AXIS: f64 = 50.0;
/// Letters of a name and of words beside the axis.
const NAME: usize = 44;
const WORDS: usize = 60;

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
    /// `foot`: room below the rows, [`AXIS`] where there is an axis.
    pub(super) fn new(
        id: &str,
        title: &str,
        about: &str,
        texts: &[RowText<'_>],
        foot: f64,
        room: Room,
    ) -> Self {
        match room {
            Room::Desk => desk(id, title, about, texts, foot),
            Room::Hand => hand(id, title, about, texts, foot),
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

fn desk(id: &str, title: &str, about: &str, texts: &[RowText<'_>], foot: f64) -> Rows {
    let room = |of: fn(&RowText<'_>) -> usize, most: usize, least: f64| {
        let letters = texts.iter().map(of).max().unwrap_or(0).min(most);
        (letters as f64 * LETTER + 24.0).max(least)
    };
    let left = room(|text| text.name.chars().count(), NAME, 120.0);
    let right = room(|text| text.words.chars().count(), WORDS, 80.0);
    let mut chart = Chart::new(id, title, about, [FULL, HEAD + foot + ROW * texts.len() as f64], left);
    chart.area[1] = FULL - right;
    let [from, to, top, _] = chart.area;
    let mut middles = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let y = top + ROW * (at as f64 + 0.5);
        chart.text(from - 10.0, y + 4.0, "t e", &cut(text.name, NAME));
        words(&mut chart, to + 14.0, y + 4.0, text.class, &cut(text.words, WORDS));
        middles.push(y);
    }
    chart.area[3] = top + ROW * texts.len() as f64;
    Rows { chart, middles }
}

fn hand(id: &str, title: &str, about: &str, texts: &[RowText<'_>], foot: f64) -> Rows {
    let line = ((HAND - 20.0) / LETTER - 1.0) as usize;
    let fits = |text: &RowText<'_>| text.name.chars().count() + text.words.chars().count() + 3 <= line;
    // Each row's lines of name and of words; those that fit beside the name have none of their own.
    let folded: Vec<[Vec<String>; 2]> = texts
        .iter()
        .map(|text| {
            let below = if fits(text) { Vec::new() } else { lines(text.words, line) };
            [lines(text.name, line), below]
        })
        .collect();
    let height = |[name, words]: &[Vec<String>; 2]| LINE * (name.len() + words.len()) as f64 + MARK;
    let all: f64 = folded.iter().map(height).sum();
    let mut chart = Chart::new(id, title, about, [HAND, HEAD + foot + all], 12.0);
    let [from, to, top, _] = chart.area;
    let (mut y, mut middles) = (top, Vec::new());
    for (text, [name, below]) in texts.iter().zip(&folded) {
        if fits(text) {
            words(&mut chart, to, y + 12.0, &format!("{} e", text.class), text.words);
        }
        for part in name {
            chart.text(from, y + 12.0, "n halo", part);
            y += LINE;
        }
        for part in below {
            words(&mut chart, from, y + 12.0, text.class, part);
            y += LINE;
        }
        y += MARK;
        middles.push(y - MARK / 2.0);
    }
    chart.area[3] = y;
    Rows { chart, middles }
}

/// A text in at most two lines, broken between words.
fn lines(text: &str, letters: usize) -> Vec<String> {
    const MOST: usize = 2;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let used = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(line) if used == 0 => line.push_str(word),
            Some(line) if used + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let more = lines.len() > MOST;
    lines.truncate(MOST);
    let last = lines.len() - 1;
    let ended = |(at, line): (usize, String)| {
        let line = if more && at == last { format!("{line} \u{2026}") } else { line };
        cut(&line, letters)
    };
    lines.into_iter().enumerate().map(ended).collect()
}

fn words(chart: &mut Chart, x: f64, y: f64, class: &str, words: &str) {
    let (x, y) = (px(x), px(y));
    chart.raw(&format!("<text class=\"t halo {class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(words)));
}

/// At most so many letters, cut between words where there are several.
pub(super) fn cut(text: &str, letters: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(letters) else { return text.to_owned() };
    let last = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    match text[..last].rfind(' ').filter(|space| *space > last / 2) {
        Some(space) => format!("{} \u{2026}", &text[..space]),
        None => format!("{}\u{2026}", &text[..last]),
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
        let of = |room| Rows::new("r", "t", "d", &texts, AXIS, room);
        let desk = of(Room::Desk);
        assert!(desk.chart.area[1] - desk.chart.area[0] > 300.0, "{:?}", desk.chart.area);
        let hand = of(Room::Hand);
        let apart = |rows: &Rows| rows.middle(1) - rows.middle(0);
        assert!((apart(&desk) - ROW).abs() < 1e-9 && (apart(&hand) - 2.0 * LINE - MARK).abs() < 1e-9);
        let svg = hand.chart.finish();
        assert!(svg.contains("viewBox=\"0 0 400 ") && svg.contains('\u{2026}'), "{svg}");
    }

    #[test]
    fn a_long_text_has_two_lines_and_ends_between_words() {
        let text = "123 reproduced, 4 refuted, 56 not decided, 78 not tested";
        assert_eq!(lines(text, 40), ["123 reproduced, 4 refuted, 56 not", "decided, 78 not tested"]);
        assert_eq!(lines(text, 22), ["123 reproduced, 4", "refuted, 56 not \u{2026}"]);
        assert_eq!([cut(text, 30), cut("abcdef", 3)], ["123 reproduced, 4 refuted, \u{2026}", "ab\u{2026}"]);
        assert_eq!(lines("", 10), [""]);
    }
}

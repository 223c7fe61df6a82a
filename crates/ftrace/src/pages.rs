//! The sub-buffers of one CPU, one after the other, through a small window: plain or in compressed
//! chunks.

use crate::region::{NextPage, Region};

use crate::ahead::{Ahead, Asked, Filled};
use crate::error::Error;
use crate::fill::Filler;

/// What is read at once of plain data, where it is read when it is needed.
const WINDOW: usize = 64 << 10;

/// Where the next window is.
enum Next {
    /// Nobody fills it yet.
    Here(Filler),
    /// It is being filled, or has been.
    Asked(Asked),
}

/// A window that slides over a region.
pub(crate) struct Pages {
    /// Always there between two calls.
    next: Option<Next>,
    /// Who fills windows before they are needed.
    ahead: Option<Ahead>,
    page_size: usize,
    window: Vec<u8>,
    /// The memory of the window before.
    spare: Vec<u8>,
    used: usize,
    /// Offset of the window in the decompressed data.
    window_offset: u64,
}

impl Pages {
    pub(crate) fn new(region: Region, ahead: Option<Ahead>) -> Self {
        let page_size = region.page_size;
        let most = ahead.as_ref().map_or(WINDOW, Ahead::window);
        let next = Some(Next::Here(Filler::new(region, most)));
        let (window, spare) = (Vec::new(), Vec::new());
        Self { next, ahead, page_size, window, spare, used: 0, window_offset: 0 }
    }

    pub(crate) fn window(&self) -> &[u8] {
        &self.window
    }

    /// Moves on to the next page; ranges given before are no longer valid.
    pub(crate) fn next_page(&mut self) -> Result<NextPage, Error> {
        if self.used >= self.window.len() {
            self.window_offset += self.window.len() as u64;
            self.used = 0;
            if let Some(other) = self.refill()? {
                self.window.clear();
                return Ok(other);
            }
        }
        let start = self.used;
        self.used = (start + self.page_size).min(self.window.len());
        Ok(NextPage::Page { range: start..self.used, offset: self.window_offset + start as u64 })
    }

    /// The next window; `Some`: there is none, and why.
    fn refill(&mut self) -> Result<Option<NextPage>, Error> {
        let (mut filler, outcome) = match self.next.take() {
            None => return Ok(Some(NextPage::End)),
            Some(Next::Here(mut filler)) => {
                let outcome = filler.fill(&mut self.window);
                (filler, outcome)
            }
            Some(Next::Asked(asked)) => {
                let filled = asked.recv().expect("whoever is asked for a window answers");
                let Filled { filler, window, outcome } = filled;
                self.spare = std::mem::replace(&mut self.window, window);
                (filler, outcome)
            }
        };
        let outcome = match outcome {
            Ok(None) if self.window.is_empty() => Ok(Some(filler.end_of_data())),
            other => other,
        };
        let goes_on = matches!(outcome, Ok(None)) && !filler.is_at_end();
        self.next = Some(match self.ahead.as_ref().filter(|_| goes_on) {
            Some(ahead) => match ahead.ask(filler, std::mem::take(&mut self.spare)) {
                Ok(asked) => Next::Asked(asked),
                Err(filler) => Next::Here(filler),
            },
            None => Next::Here(filler),
        });
        outcome
    }
}

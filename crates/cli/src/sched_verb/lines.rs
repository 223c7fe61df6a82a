//! Files of lines: each read, answered and printed by itself.
//!
//! A line is kept whole while it is answered, and no longer: memory is bounded by [`LONGEST`]
//! however large the file.

use crate::stdout;
use anyhow::Context;
use model::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Longest line, bytes: a set of the largest number of tasks, written at length.
const LONGEST: usize = 1 << 28;
/// Read at once: some hundred sets of forty tasks.
const AT_ONCE: usize = 1 << 20;

/// A file of lines, or standard input for `-`.
pub(super) struct Lines {
    path: PathBuf,
    input: BufReader<Box<dyn Read>>,
    number: usize,
    /// Whether the rest of a line that was too long is still to be passed over.
    cut: bool,
}

/// A line that is not blank.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    /// Its bytes; none where it is longer than [`LONGEST`].
    bytes: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Its bytes; none where it is too long.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        self.bytes
    }

    /// Its text, or what is wrong with it.
    pub(super) fn text(&self, path: &Path) -> Result<&'a [u8], Error> {
        self.bytes.ok_or_else(|| {
            let place = format!("{}, line {}", path.display(), self.number);
            Error::invalid(place, format!("more than {LONGEST} bytes"), "one JSON object a line")
        })
    }
}

/// Lines that are answered side by side, in one buffer that is used again.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// Where a line is in a batch.
struct Place {
    number: usize,
    /// None for a line longer than [`LONGEST`].
    bytes: Option<Range<usize>>,
}

impl Batch {
    /// Takes the next line and all that came with it, at most `most`, so that a caller who asks
    /// line by line does not wait. Returns the error, if one ends the lines. Drops the previous
    /// lines.
    pub(super) fn fill(&mut self, lines: &mut Lines, most: usize) -> Option<anyhow::Error> {
        self.places.clear();
        self.bytes.clear();
        // After lines of extraordinary length.
        self.bytes.shrink_to(4 * AT_ONCE);
        while self.places.is_empty() || (self.places.len() < most && lines.is_at_hand()) {
            match lines.next(&mut self.bytes) {
                Ok(Some(place)) => self.places.push(place),
                Ok(None) => break,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Number of its lines.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// One of its lines.
    pub(super) fn line(&self, at: usize) -> Option<Line<'_>> {
        let place = self.places.get(at)?;
        let bytes = place.bytes.as_ref().and_then(|bytes| self.bytes.get(bytes.clone()));
        Some(Line { number: place.number, bytes })
    }
}

impl Lines {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let input: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
        };
        Ok(Self {
            path: path.to_owned(),
            input: BufReader::with_capacity(AT_ONCE, input),
            number: 0,
            cut: false,
        })
    }

    /// Appends the next line that is not blank; none at the end.
    fn next(&mut self, bytes: &mut Vec<u8>) -> anyhow::Result<Option<Place>> {
        loop {
            self.number += 1;
            if self.cut {
                self.cut = false;
                self.failing(|input| input.skip_until(b'\n'))?;
            }
            let start = bytes.len();
            let read = self.failing(|input| input.take(LONGEST as u64 + 1).read_until(b'\n', bytes))?;
            if read == 0 {
                return Ok(None);
            }
            if read > LONGEST {
                self.cut = !bytes.ends_with(b"\n");
                bytes.truncate(start);
                return Ok(Some(Place { number: self.number, bytes: None }));
            }
            if !bytes[start..].trim_ascii().is_empty() {
                return Ok(Some(Place { number: self.number, bytes: Some(start..bytes.len()) }));
            }
            bytes.truncate(start);
        }
    }

    /// Whether another line has already been read, so that nobody waits for it.
    pub(super) fn is_at_hand(&self) -> bool {
        !self.cut && self.input.buffer().contains(&b'\n')
    }

    fn failing<T>(
        &mut self,
        read: impl FnOnce(&mut BufReader<Box<dyn Read>>) -> io::Result<T>,
    ) -> anyhow::Result<T> {
        read(&mut self.input)
            .with_context(|| format!("cannot read {}, line {}", self.path.display(), self.number))
    }
}

/// How the answers to lines are given.
pub(super) struct Answering {
    /// Whether to report a line without an answer, and read the next one.
    pub(super) keep_going: bool,
    /// Whether errors are reported as JSON.
    pub(super) json: bool,
}

/// Prints the answer to every line; `answer` also returns whether it is a finding. Exit code 1
/// where a line had no answer, else 2 with a finding.
pub(super) fn answer_each(
    path: &Path,
    answering: &Answering,
    answer: impl Fn(usize, Result<&[u8], Error>) -> anyhow::Result<(String, bool)>,
) -> anyhow::Result<u8> {
    let mut out = stdout::long(stdout::ROOM);
    let (mut found, mut wrong) = (false, false);
    for_each(path, |number, line| match answer(number, line) {
        Ok((text, is_finding)) => {
            found |= is_finding;
            out.write_all(text.as_bytes()).context("cannot write")
        }
        Err(error) if answering.keep_going => {
            wrong = true;
            out.flush()?;
            crate::failure::show(&error, answering.json);
            Ok(())
        }
        Err(error) => Err(error),
    })?;
    out.flush()?;
    Ok(if wrong { 1 } else { u8::from(found) * 2 })
}

/// Calls `each` with the number, from 1, and the text of every line that is not blank, or with what
/// is wrong with it. A file without such lines is an error.
pub(super) fn for_each(
    path: &Path,
    mut each: impl FnMut(usize, Result<&[u8], Error>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut lines = Lines::open(path)?;
    let (mut batch, mut any) = (Batch::default(), false);
    loop {
        let unread = batch.fill(&mut lines, 1);
        if let Some(error) = unread {
            return Err(error);
        }
        let Some(line) = batch.line(0) else { break };
        any = true;
        each(line.number, line.text(path))?;
    }
    if any { Ok(()) } else { Err(nothing(path)) }
}

/// The error for a file without a line.
pub(super) fn nothing(path: &Path) -> anyhow::Error {
    Error::invalid(path.display(), "empty input", "one JSON object per line").into()
}

//! What ran, as small numbers: functions, interrupt names and task names, each text kept once.

use crate::hash::FastMap;

/// A text of [`Labels`].
pub type LabelId = u32;

/// The texts seen so far.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    texts: Vec<String>,
    ids: FastMap<Box<[u8]>, LabelId>,
}

impl Labels {
    /// The number of a text.
    pub fn id(&mut self, text: &str) -> LabelId {
        self.id_of_bytes(text.as_bytes())
    }

    /// The number of a text as the kernel wrote it; what is not UTF-8 is shown as U+FFFD.
    #[inline]
    pub fn id_of_bytes(&mut self, text: &[u8]) -> LabelId {
        self.ids.get(text).copied().unwrap_or_else(|| self.add(text))
    }

    fn add(&mut self, text: &[u8]) -> LabelId {
        let id = self.texts.len() as LabelId;
        self.texts.push(String::from_utf8_lossy(text).into_owned());
        self.ids.insert(text.into(), id);
        id
    }

    /// The text of a number; empty for one that was never given.
    pub fn text(&self, id: LabelId) -> &str {
        self.texts.get(id as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut labels = Labels::default();
        let (a, b) = (labels.id("kworker/1:1"), labels.id("eth0"));
        assert_eq!((labels.id_of_bytes(b"kworker/1:1"), labels.text(b)), (a, "eth0"));
        let odd = labels.id_of_bytes(b"\xff");
        assert_eq!((labels.text(odd), labels.text(99)), ("\u{fffd}", ""));
    }
}

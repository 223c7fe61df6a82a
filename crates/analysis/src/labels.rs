//! What ran, as small numbers: functions, interrupt names and task names, each text kept once.

use std::collections::HashMap;

/// A text of [`Labels`].
pub type LabelId = u32;

/// The texts seen so far.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    texts: Vec<String>,
    ids: HashMap<String, LabelId>,
}

impl Labels {
    /// The number of a text.
    pub fn id(&mut self, text: &str) -> LabelId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.texts.len() as LabelId;
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// The text of a number; empty for one that was never given.
    pub fn text(&self, id: LabelId) -> &str {
        self.texts.get(id as usize).map_or("", String::as_str)
    }
}

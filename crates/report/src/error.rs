//! The errors of this crate: a template or a value that could not be rendered, an export that could
//! not be written.

/// Why a document has no rendering.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A template of the page failed.
    #[error("render {section} of the report: {source}")]
    Template {
        /// The section.
        section: &'static str,
        /// The template engine's reason, with its line.
        source: minijinja::Error,
    },
    /// What was made could not be written.
    #[error("cannot be written: {0}")]
    Write(#[from] std::io::Error),
    /// A value has no form in JSON.
    #[error("write {what} as json: {source}")]
    Json {
        /// The value.
        what: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
}

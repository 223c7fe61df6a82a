//! Prints `docs/mechanisms.md` from the catalogue that ships with stillcore.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let catalogue = audit::Catalogue::embedded().map_err(std::io::Error::other)?;
    std::io::stdout().write_all(audit::mechanisms_page(&catalogue).as_bytes())
}

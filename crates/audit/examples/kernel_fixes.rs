//! Prints `docs/kernel-fixes.md` from the list that ships with stillcore.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let fixes = audit::fixes::Fixes::embedded().map_err(std::io::Error::other)?;
    std::io::stdout().write_all(audit::fixes::fixes_page(&fixes).as_bytes())
}

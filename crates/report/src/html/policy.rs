//! A page's own policy: the only style and script that a browser takes are those that the page was
//! made with, by their digests (Content Security Policy Level 3, hash sources). Any other style or
//! script in it does nothing.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// Where the template of a page has its digests.
const PLACES: [(&str, &str, &str); 2] =
    [("sha256-OF-STYLE", "<style>", "</style>"), ("sha256-OF-SCRIPT", "<script>", "</script>")];

/// Puts the digests of its first style and its last script into a page: what others wrote stands in
/// between, and is escaped.
pub(super) fn sealed(mut page: String) -> String {
    for (place, begin, end) in PLACES {
        let Some(digest) = text_between(&page, begin, end).map(digest) else { continue };
        page = page.replacen(place, &digest, 1);
    }
    page
}

fn text_between<'p>(page: &'p str, begin: &str, end: &str) -> Option<&'p str> {
    let at = if begin == "<style>" { page.find(begin) } else { page.rfind(begin) }? + begin.len();
    let length = page[at..].find(end)?;
    Some(&page[at..at + length])
}

fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_what_stands_in_the_page() {
        let page = "<meta content=\"style-src 'sha256-OF-STYLE'; script-src 'sha256-OF-SCRIPT'\"><style>\na{}</style>\
                    <p>&lt;script&gt;</p><script type=\"application/json\">{}</script><script>alert('Hello, world.');</script>";
        let page = sealed(page.to_owned());
        // The example of the specification.
        assert!(page.contains("script-src 'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"), "{page}");
        assert!(page.contains(&format!("style-src '{}'", digest("\na{}"))), "{page}");
        assert_eq!(sealed("nothing".to_owned()), "nothing");
    }
}

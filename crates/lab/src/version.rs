//! The order of Debian package versions (Debian policy manual, section 5.6.12).
//!
//! A version is `[epoch:]upstream[-revision]`. Parts are compared by alternating runs of
//! non-digits, where `~` sorts before everything, even the end, and letters before other signs, and
//! runs of digits, compared as numbers.

use std::cmp::Ordering;

/// Compares two version strings as dpkg does.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, rest_a) = split_epoch(a);
    let (epoch_b, rest_b) = split_epoch(b);
    let (upstream_a, revision_a) = split_revision(rest_a);
    let (upstream_b, revision_b) = split_revision(rest_b);
    compare_digits(epoch_a, epoch_b)
        .then_with(|| compare_part(upstream_a.as_bytes(), upstream_b.as_bytes()))
        .then_with(|| compare_part(revision_a.as_bytes(), revision_b.as_bytes()))
}

fn split_epoch(version: &str) -> (&[u8], &str) {
    version.split_once(':').map_or((b"".as_slice(), version), |(epoch, rest)| (epoch.as_bytes(), rest))
}

fn split_revision(version: &str) -> (&str, &str) {
    version.rsplit_once('-').unwrap_or((version, ""))
}

fn compare_part(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let (text_a, rest_a) = split_run(a, false);
        let (text_b, rest_b) = split_run(b, false);
        let (digits_a, rest_a) = split_run(rest_a, true);
        let (digits_b, rest_b) = split_run(rest_b, true);
        let order = compare_text(text_a, text_b).then_with(|| compare_digits(digits_a, digits_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn split_run(bytes: &[u8], digits: bool) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| byte.is_ascii_digit() != digits).unwrap_or(bytes.len());
    bytes.split_at(end)
}

fn compare_text(a: &[u8], b: &[u8]) -> Ordering {
    let weights = |bytes: &[u8], i: usize| match bytes.get(i) {
        None => 0,
        Some(b'~') => -1,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    (0..a.len().max(b.len()))
        .map(|i| weights(a, i).cmp(&weights(b, i)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares runs of digits as numbers of any size: leading zeros mean nothing, a longer number is
/// larger.
fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (trim_zeros(a), trim_zeros(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn trim_zeros(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|byte| *byte != b'0').unwrap_or(digits.len());
    &digits[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn policy_examples() {
        // From the policy manual: the sorted order of these parts.
        let sorted = ["~~", "~~a", "~", "", "a"];
        for pair in sorted.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(compare("1.2-1", "1:0.1"), Ordering::Less);
        assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
    }

    #[test]
    fn kernel_releases() {
        let sorted = [
            "5.10.0-9",
            "5.10.0-32",
            "5.10.0-46",
            "6.1.0-9",
            "6.1.0-10",
            "6.12.9+deb13",
            "6.12.115+deb13",
            "6.12.115+deb13.1",
            "6.12.116+deb13",
        ];
        for pair in sorted.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn backports_sort_before_what_they_backport() {
        assert_eq!(compare("6.1.76-1~bpo11+1", "6.1.76-1"), Ordering::Less);
    }

    proptest! {
        #[test]
        fn is_a_total_order(a in "[0-9]{1,3}(\\.[0-9]{1,3}|[a-z~+]){0,4}(-[0-9])?", b in "[0-9]{1,3}(\\.[0-9]{1,3}|[a-z~+]){0,4}(-[0-9])?", c in "[0-9]{1,3}(\\.[0-9]{1,3}|[a-z~+]){0,4}") {
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}

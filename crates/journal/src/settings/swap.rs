//! Swap areas: swapoff(2) and swapon(2), with the priority that the area had.

use machine::{Root, SwapArea, swaps};
use sys::{Error, swap};

pub(super) fn read(area: &str) -> Result<Option<String>, Error> {
    let Some(areas) = swaps(&Root::live())? else { return Ok(None) };
    let own = areas.iter().rfind(|one| one.path == area);
    let on = |one: &SwapArea| format!("on {}", one.priority);
    Ok(Some(own.map_or_else(|| "off".to_owned(), on)))
}

pub(super) fn write(area: &str, value: &str) -> Result<(), Error> {
    let path = unescaped(area);
    let Some(priority) = value.strip_prefix("on ") else {
        return swap::off(&path).map_err(|error| Error::os("switch off swap at", area, error));
    };
    let priority = priority.parse().map_err(|_| {
        Error::from(model::Error::invalid(area, format!("swap priority {priority:?}"), "a number"))
    })?;
    swap::on(&path, priority).map_err(|error| Error::os("switch on swap at", area, error))
}

/// A path of `/proc/swaps`, where blanks are spelled in octal.
fn unescaped(area: &str) -> Vec<u8> {
    let mut path = Vec::new();
    let mut rest = area.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal =
            after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        let (one, left) = match octal.filter(|_| byte == b'\\') {
            Some(code) => (code, &after[3..]),
            None => (byte, after),
        };
        path.push(one);
        rest = left;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_that_is_no_number_is_refused_and_nothing_is_switched_on() {
        let error = write("/no/such/area", "on fast").unwrap_err().to_string();
        assert_eq!(error, "/no/such/area: swap priority \"fast\"; expected a number");
    }

    #[test]
    fn blanks_in_paths_are_spelled_in_octal() {
        assert_eq!(unescaped("/swap\\040file\\0121"), b"/swap file\n1");
        assert_eq!(unescaped("/dev/dm-0\\"), b"/dev/dm-0\\");
    }
}

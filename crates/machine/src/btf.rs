//! The kernel's type information (`/sys/kernel/btf/vmlinux`, Linux Documentation/bpf/btf.rst): it
//! lists the names of functions, types and enumerators between zero bytes.

/// Where the kernel keeps it.
pub const BTF: &str = "sys/kernel/btf/vmlinux";

/// Whether it lists a name.
pub fn has_name(btf: &[u8], name: &str) -> bool {
    let wanted: Vec<u8> = [&[0], name.as_bytes(), &[0]].concat();
    memchr::memmem::find(btf, &wanted).is_some()
}

/// The names among `wanted` that it lists, in its own form: what a capture takes of it.
pub fn names_in(btf: &[u8], wanted: &[String]) -> Vec<u8> {
    let found = wanted.iter().filter(|name| has_name(btf, name));
    let mut bytes = vec![0];
    found.for_each(|name| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_taken() {
        assert_eq!(names_in(b"\0a\0bc\0", &["bc".to_owned(), "b".to_owned()]), b"\0bc\0");
    }
}

//! What the static binary leaves out: a process that ends at a panic unwinds nothing, so the tables for it (a tenth of the file) have no
//! reader; relocations of one kind need a bit each, not three words (`relr`, System V ABI); functions of equal code are kept once.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=nothing-unwinds.ld");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Profiles made from `release` abort; those made from `dev`, which the tests are built with, unwind.
    if !(is("PROFILE", "release") && is("CARGO_CFG_TARGET_ENV", "musl")) {
        return;
    }
    // The linker is called by rustc itself (`.cargo/config.toml`), so its options are given as they are.
    let script =
        format!("--script={}/nothing-unwinds.ld", env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    for option in [script.as_str(), "--pack-dyn-relocs=relr", "--icf=all"] {
        println!("cargo::rustc-link-arg-bins={option}");
    }
}

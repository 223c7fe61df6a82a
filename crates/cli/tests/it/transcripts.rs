//! What the command prints, word by word: `cmd/*.trycmd`. After a wanted change:
//! `TRYCMD=overwrite cargo test -p stillcore --test it transcripts`.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

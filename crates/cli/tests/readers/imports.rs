//! Results of other tools, as `compare` takes them.

use super::{Reader, fixture, in_scratch, text, whole};
use analysis::import;

const FILES: [&str; 6] = [
    "cyclictest.json",
    "cyclictest.txt",
    "jitterdebugger.json",
    "oslat.json",
    "rtla-osnoise.txt",
    "rtla-timerlat.txt",
];

pub(crate) fn reader() -> Reader {
    Reader {
        name: "import",
        seeds: FILES.iter().map(|file| fixture(&format!("fixtures/results/{file}"))).collect(),
        damage: text,
        read: |bytes| {
            in_scratch(|scratch| {
                let path = scratch.at("result");
                std::fs::write(&path, bytes).unwrap();
                let parts = [None, Some("irq"), Some("thread"), Some("user")];
                let read = parts.map(|part| import::read(&path, "result".to_owned(), part));
                for run in read.iter().flatten() {
                    assert!(!run.windows.is_empty(), "a run without a window");
                }
                whole(read.iter().any(Result::is_ok))
            })
        },
        short: 500,
    }
}

//! The only crate that touches a machine, and the only one with `unsafe`.
//!
//! `machine` reads, `isolate` judges and changes isolation, `boot` keeps the kernel command line of
//! the next boot, `disturb` provokes interference, `measure` takes samples, `record` keeps the
//! kernel's trace. `journal` has every change on disk before it is made; each kind brings its own
//! undo (`owners` lists them), and `session` and `guardian` make sure that it is called. `settings`
//! reads and writes what can be set; `enter` brings tasks onto CPUs. `window` puts a measurement together; `guest` is what runs as
//! pid 1 in a lab guest.

pub mod boot;
pub mod class;
pub mod disturb;
pub mod enter;
pub mod error;
pub mod guardian;
pub mod guest;
pub mod isolate;
pub mod journal;
pub mod machine;
pub mod measure;
pub mod owners;
pub mod record;
pub mod session;
pub mod settings;
pub mod sys;
pub mod window;

pub use error::Error;

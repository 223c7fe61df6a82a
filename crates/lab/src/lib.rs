//! The lab: kernels from distribution packages, booted in QEMU as if they were machines.
//!
//! The way of one run: a [`Spec`] names a kernel; `kernels` fetches its package with a private
//! `apt` and keeps it, checked, in the cache; `modules` finds which modules the guest needs;
//! `initramfs` packs them with our own static program; `qemu` words the command line, `vm` runs it;
//! the guest sends a tar in a `frame`, which `results` unpacks. [`run`] does all of it.
//! `guest_config` is what both sides of the boot agree on.
//!
//! Event *counts* in such a guest are exact; times are not, because the machine below is shared.

#![forbid(unsafe_code)]

mod apt;
mod arch;
pub mod cache;
mod error;
pub mod frame;
pub mod guest;
pub mod guest_config;
pub mod initramfs;
pub mod kernels;
pub mod modinfo;
pub mod modules;
mod packages;
mod program;
pub mod qemu;
pub mod results;
mod run;
pub mod spec;
mod stop;
pub mod version;
mod vm;
mod workdir;

pub use crate::stop::Stop;
pub use arch::Arch;
pub use error::{Error, Result};
pub use run::{Event, Outcome, prepare, qemu_version, run};
pub use spec::{Accel, Addition, Nic, Smp, Spec};

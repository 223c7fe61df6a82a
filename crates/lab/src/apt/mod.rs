//! Fetching packages of any Debian suite with a private apt configuration, beside the machine's
//! own.
//!
//! - `sources`: reads the machine's sources and turns them to another suite;
//! - `client`: lists, versions and downloads through `apt-get` and `apt-cache`.
//!
//! The machine's package state stays untouched: lists, archives and status live in the user's cache
//! directory. Proxies, certificates and credentials stay where the machine's administrator put
//! them, because apt reads its usual configuration before ours.

mod client;
mod sources;

pub(crate) use client::Apt;

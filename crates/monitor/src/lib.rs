//! What `stillcore monitor` keeps account of while it runs for weeks: breaches, each in exactly one
//! of kept, dropped and not recorded ([`ledger`]); and rows of metrics, of which there is a bounded
//! number whatever names come along ([`rows`]); who called what reaches the watched CPUs
//! ([`offences`]); and its history: what each stretch of time has added
//! ([`interval`]), its [`figures`], how two periods differ in them ([`periods`]), when something
//! changed ([`moments`]), and which of many machines is worse ([`fleet`]).
//! Pure: knows no clock, no file and no kernel.
#![forbid(unsafe_code)]

pub mod figures;
pub mod fleet;
pub mod interval;
pub mod ledger;
pub mod moments;
pub mod offences;
pub mod periods;
pub mod rows;

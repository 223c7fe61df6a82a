//! A verb is one file and one row of a table. The file declares the arguments and has the function
//! that runs the verb. The row has its help text, its name, and how it treats the machine and the
//! signals that ask it to end: the functions here.

use crate::owners;
use std::path::Path;
use std::time::Duration;
use sys::signals::EndSignals;

/// Makes the verbs that the command line takes, and `run`, from rows
/// `Name(arguments) => treatment(function)`.
macro_rules! verbs {
    ($(#[$of_all:meta])* $verbs:ident {
        $($(#[$of_one:meta])* $verb:ident($args:ty) => $treatment:ident($run:path),)*
    }) => {
        #[derive(Debug, clap::Parser)]
        $(#[$of_all])*
        pub(crate) enum $verbs {
            $($(#[$of_one])* $verb(Box<$args>),)*
        }

        impl $verbs {
            /// Runs the verb; returns the exit status.
            pub(crate) fn run(&self, signals: &sys::signals::EndSignals) -> anyhow::Result<u8> {
                match self {
                    $(Self::$verb(args) => $crate::verbs::$treatment($run, args, signals),)*
                }
            }
        }
    };
}

/// Reads and computes only. A signal ends it at once: all that it has to remove is a tree that it
/// has unpacked. The thread ends with the process.
pub(crate) fn reads<A>(
    run: fn(&A) -> anyhow::Result<u8>,
    args: &A,
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    end_at_once(signals)?;
    run(args)
}

/// Lets a signal end this process at once, from now on.
pub(crate) fn end_at_once(signals: &EndSignals) -> std::io::Result<()> {
    let signals = signals.try_clone()?;
    std::thread::spawn(move || {
        loop {
            if let Some(signal) = signals.arrived() {
                machine::remove_unpacked();
                sys::signals::end_by(signal);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    Ok(())
}

/// Reads and computes, or runs commands of the user, which it ends when a signal arrives. Changes
/// nothing itself.
pub(crate) fn commands<A>(
    run: fn(&A, &EndSignals) -> anyhow::Result<u8>,
    args: &A,
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    run(args, signals)
}

/// Changes the machine, if only while it runs. It first undoes what a killed stillcore has left,
/// and undoes its own changes when a signal arrives.
pub(crate) fn changes<A>(
    run: fn(&A, &EndSignals) -> anyhow::Result<u8>,
    args: &A,
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    restore_what_was_left()?;
    run(args, signals)
}

/// Changes the machine, and no signal ends it half way.
pub(crate) fn completes<A>(
    run: fn(&A) -> anyhow::Result<u8>,
    args: &A,
    _: &EndSignals,
) -> anyhow::Result<u8> {
    restore_what_was_left()?;
    run(args)
}

/// Boots guests, which it stops when a signal arrives; changes nothing here.
pub(crate) fn boots<A>(
    run: fn(&A, &EndSignals) -> anyhow::Result<u8>,
    args: &A,
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    run(args, signals)
}

/// Has verbs of its own, each with its own treatment.
pub(crate) fn nested<V>(
    run: fn(&V, &EndSignals) -> anyhow::Result<u8>,
    verb: &V,
    signals: &EndSignals,
) -> anyhow::Result<u8> {
    run(verb, signals)
}

/// Undoes what a stillcore that was killed together with its guardian has left. `assess` looks
/// again and reports what cannot be undone.
fn restore_what_was_left() -> anyhow::Result<()> {
    let home = journal::session::home();
    if let Some(state) = journal::session::default_state(home.as_deref()) {
        restore_what_was_left_in(&state)?;
    }
    Ok(())
}

/// The same for one state directory; returns what could not be undone.
pub(crate) fn restore_what_was_left_in(state: &Path) -> anyhow::Result<Vec<String>> {
    let restored = journal::guardian::recover(state, owners::all())?;
    if !restored.undone.is_empty() {
        eprintln!("note: took back what a killed run had left: {}", restored.undone.join(", "));
    }
    Ok(restored.failed)
}

/// Turns a signal into the lab's request to stop; the thread ends with the process. It leaves the
/// signal to be taken by others: a call that does one thing after another asks several times.
pub(crate) fn stop_on(signals: &EndSignals) -> std::io::Result<lab::Stop> {
    let signals = signals.try_clone()?;
    let stop = lab::Stop::default();
    let asked = stop.clone();
    std::thread::spawn(move || {
        // Where nothing can be waited for, nothing can be asked.
        if signals.wait_for_one().is_ok() {
            asked.stop();
        }
    });
    Ok(stop)
}

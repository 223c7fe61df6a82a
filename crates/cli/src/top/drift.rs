//! Whether what stillcore has applied still holds, looked at now and then on a thread of its own: a
//! look takes longer than a frame.

use crate::isolate::State;
use audit::Catalogue;
use isolate::verify::verify;
use journal::settings::Live;
use machine::Root;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

/// The thread, and what it has seen.
pub(crate) struct Drift {
    seen: Arc<Mutex<Option<Vec<String>>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drift {
    /// Begins to look for a session in this directory, else in the usual ones; then once an
    /// interval.
    pub(crate) fn begin(dir: Option<PathBuf>, interval: Duration) -> std::io::Result<Self> {
        let seen: Arc<Mutex<Option<Vec<String>>>> = Arc::default();
        let ended: Arc<AtomicBool> = Arc::default();
        let (to, until) = (Arc::clone(&seen), Arc::clone(&ended));
        let state = State { dir };
        let thread = Builder::new().name("drift".to_owned()).spawn(move || {
            while !until.load(Ordering::Acquire) {
                let now = look(&state);
                *to.lock().unwrap_or_else(PoisonError::into_inner) = now;
                park_timeout(interval);
            }
        })?;
        Ok(Self { seen, ended, thread: Some(thread) })
    }

    /// What has drifted; `None` where nothing is isolated by stillcore.
    pub(crate) fn seen(&self) -> Option<Vec<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Drift {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn look(state: &State) -> Option<Vec<String>> {
    let (_, found) = state.standing().ok()??;
    if !found.this_boot {
        return None;
    }
    let drifted = || -> anyhow::Result<Vec<String>> {
        let mut settings = Live::new(&std::env::current_exe()?);
        Ok(verify(&Root::live(), &Catalogue::embedded()?, &found, &mut settings)?.drifted)
    };
    Some(drifted().unwrap_or_else(|error| vec![format!("{error:#}")]))
}

//! `stillcore monitor start`: the arguments, the setting up, and the loop.

use super::action;
use super::options::StartArgs;
use super::outlets::Outlets;
use super::service;
use super::watcher::Watcher;
use crate::run::place::{Asked, Place};
use crate::slow;
use crate::stdout;
use journal::alone::{self, Role};
use std::time::{Duration, Instant};
use sys::notify::Notify;
use sys::process::is_root;
use sys::signals::EndSignals;

/// How often the kernel's pages are looked at.
const TICK: Duration = Duration::from_millis(500);

/// Watches until it is stopped.
pub(crate) fn run(args: &StartArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.remove {
        return service::remove();
    }
    if args.install {
        return service::install(args);
    }
    anyhow::ensure!(is_root(), "monitor records kernel events, for which it must be root");
    for (option, time) in [("--over", Some(args.over)), ("--interference-over", args.interference_over)] {
        anyhow::ensure!(!time.is_some_and(|time| time.is_zero()), "{option}: 0, expected a time above 0");
    }
    let asked =
        Asked { cpus: args.cpus.as_ref(), state: args.state.as_deref(), all_cpus: true, ..Asked::default() };
    if let Some(program) = &args.on_breach {
        action::check(program, args.on_breach_user)?;
    }
    let place = Place::resolve(&asked)?;
    let alone = alone::take(&place.state, Role::Monitor)?;
    let notify = Notify::of(
        std::env::var_os("NOTIFY_SOCKET").as_deref(),
        std::env::var("WATCHDOG_USEC").ok().as_deref(),
        std::env::var("WATCHDOG_PID").ok().as_deref(),
    );
    // An address that is taken ends it before anything is recorded.
    let mut outlets = Outlets::open(args)?;
    let mut watcher = slow::with_notice("preparing: the kernel patches its code for each event", || {
        Watcher::begin(args, &place)
    })?;
    if !args.json {
        stdout::progress(format_args!("{}", watcher.introduction(outlets.address())));
    }
    let ended = watch(args, signals, &mut watcher, &mut outlets, &notify);
    notify.stopping();
    let end = watcher.end(&mut outlets);
    drop(alone);
    ended?;
    end.map(|()| 0)
}

fn watch(
    args: &StartArgs,
    signals: &EndSignals,
    watcher: &mut Watcher<'_>,
    outlets: &mut Outlets,
    notify: &Notify,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut alive_at = Duration::ZERO;
    notify.ready();
    loop {
        let now = began.elapsed();
        if signals.arrived().is_some() || args.duration.is_some_and(|most| now >= most) {
            return Ok(());
        }
        watcher.tick(outlets)?;
        if let Some(most) = notify.watchdog().filter(|_| now >= alive_at) {
            alive_at = now + most / 3;
            notify.alive();
        }
        signals.wait_for(TICK)?;
    }
}

//! Where in user space a task was when it caused an event.
//!
//! After that event come the user-space stack and the kernel's, in this order (Linux
//! kernel/trace/trace.c, `trace_event_buffer_commit`: the option before the trigger). Together they
//! are one call chain, from the program to the function that sends.

use super::Labels;
use crate::labels::LabelId;
use crate::stacks::{INSIDE, OUTSIDE};
use crate::view::{KernelEvent, Way, What};
use ftrace::UserStackLayout;
use model::user_frames::UserFrames;
use rustc_hash::FxHashMap;

/// By CPU, the user-space stack that a kernel stack may follow.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// By process and address.
    functions: FxHashMap<(u32, u64), String>,
    /// By CPU: the task, and its functions.
    last: FxHashMap<u32, (i32, LabelId)>,
    /// Joined stacks, by both parts.
    joined: FxHashMap<(LabelId, LabelId), LabelId>,
}

impl Users {
    /// Addresses that have names.
    pub(super) fn knows(&mut self, frames: UserFrames) {
        let known = frames.frames.into_iter().map(|one| ((one.tgid, one.address), one.function));
        self.functions.extend(known);
    }

    /// The trace begins anew: no stack is pending.
    pub(super) fn begin(&mut self) {
        self.last.clear();
    }

    /// The stack of user space in a record of a CPU.
    pub(super) fn found(
        &mut self,
        (cpu, pid): (u32, i32),
        layout: &UserStackLayout,
        data: &[u8],
        labels: &mut Labels,
    ) {
        let (process, frames) = layout.frames(data);
        let name = |address: u64| {
            self.functions.get(&(process, address)).cloned().unwrap_or_else(|| format!("{address:#x}"))
        };
        let names: Vec<String> = frames.map(name).collect();
        if !names.is_empty() {
            self.last.insert(cpu, (pid, labels.id(&names.join(INSIDE))));
        }
    }

    /// Whether no user-space stack waits for its kernel stack.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// The next event of a CPU; extends a kernel stack by the user-space stack before it.
    #[inline]
    pub(super) fn event(&mut self, event: &mut KernelEvent, labels: &mut Labels) {
        if !self.last.is_empty() && event.what != What::UserStack {
            let last = self.last.remove(&event.cpu);
            // The program does not cause an interrupt.
            if let (Some((pid, users)), What::Stack { act, .. }) = (last, &mut event.what)
                && pid == event.pid
                && event.level == crate::view::Level::Task
            {
                self.join(act, users, labels);
            }
        }
    }

    fn join(&mut self, act: &mut Way, users: LabelId, labels: &mut Labels) {
        let Some(frames) = act.frames else { return };
        let both = self.joined.entry((frames, users)).or_insert_with(|| {
            let whole = [labels.text(frames), labels.text(users)].join(OUTSIDE);
            labels.id(&whole)
        });
        act.frames = Some(*both);
    }
}

//! Admission of a thread by LITMUS^RT: the sequence that a modified cyclictest takes (Cerqueira and
//! Brandenburg, OSPERT 2013, section 2.3 and Fig. 2). Parameters are defined; under a partitioned
//! plug-in the thread first migrates to its CPU; `set_rt_task_param` has the kernel validate them;
//! `task_mode(LITMUS_RT_TASK)`, which requests SCHED_LITMUS as a policy, admits it.
//!
//! The kernel's side is that of LITMUS^RT from 2016 on, whose calls are ioctls of
//! `/dev/litmus/ctrl` (`include/litmus/ctrlpage.h`, `rt_param.h`). No such kernel is in the lab:
//! the sequence is tested against a fake of that interface below, which checks what
//! `sys_set_rt_task_param` and `litmus_admit_task` check, and nothing here has met the real one.
//! The control page that liblitmus maps for non-preemptive sections and overhead tracing is not
//! needed for admission, and not mapped.

use crate::sched::SCHED_LITMUS;
use model::sample::Policy;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The ioctl that stands for `set_rt_task_param` (`litmus_syscall_id_t` counts from 2006).
const SET_RT_TASK_PARAM: u64 = 2007;
/// The device that takes it.
const CONTROL: &str = "/dev/litmus/ctrl";
/// Priorities of P-FP: 1 is the highest of 512 (`LITMUS_MAX_PRIORITY`).
const PRIORITIES: u32 = 512;
/// Of which this is what a priority of 99 is.
const HIGHEST: u32 = 1;

/// `struct rt_task`: a thread's parameters for the kernel. Times in ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RtTask {
    exec_cost: u64,
    period: u64,
    relative_deadline: u64,
    phase: u64,
    cpu: u32,
    priority: u32,
    /// RT_CLASS_HARD 0, SOFT 1, BEST_EFFORT 2.
    class: u32,
    /// NO_ENFORCEMENT is 0: a job may overrun, as in the paper.
    budget: u32,
    /// TASK_SPORADIC is 0.
    release: u32,
}

/// One step of the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// `be_migrate_to`: onto its CPU while it is still an ordinary thread.
    Migrate(u32),
    /// `set_rt_task_param`.
    SetParameters(RtTask),
    /// `task_mode(LITMUS_RT_TASK)`.
    BecomeRealTime,
}

/// Whether tasks of a plug-in stay on one CPU each.
pub fn is_partitioned(plugin: &str) -> bool {
    matches!(plugin, "P-FP" | "PSN-EDF" | "P-RES")
}

/// The steps for a policy, for a thread whose first allowed CPU is `cpu`. EINVAL without a
/// reservation.
fn steps(plugin: &str, policy: &Policy, cpu: u32) -> io::Result<Vec<Step>> {
    let reservation = policy.reservation.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let parameters = RtTask {
        exec_cost: reservation.runtime_ns,
        period: reservation.period_ns,
        relative_deadline: reservation.deadline_ns,
        phase: 0,
        cpu,
        // POSIX counts upwards, P-FP downwards; plug-ins of EDF ignore it.
        priority: (HIGHEST + 99u32.saturating_sub(policy.priority)).min(PRIORITIES - 1),
        class: 1,
        budget: 0,
        release: 0,
    };
    let migrate = is_partitioned(plugin).then_some(Step::Migrate(cpu));
    Ok(migrate.into_iter().chain([Step::SetParameters(parameters), Step::BecomeRealTime]).collect())
}

/// Takes the steps until one is refused.
fn admit_by(steps: &[Step], take: &mut dyn FnMut(Step) -> io::Result<()>) -> io::Result<()> {
    steps.iter().try_for_each(|step| take(*step))
}

/// Admits the calling thread. ENOENT without the control device, ENOTTY where it takes no calls,
/// EINVAL for what the kernel or the active plug-in does not admit.
pub(super) fn admit(plugin: &str, policy: &Policy) -> io::Result<()> {
    let cpu = super::sched::affinity()?.iter().next().unwrap_or(0);
    let control = File::options().read(true).write(true).open(CONTROL)?;
    admit_by(&steps(plugin, policy, cpu)?, &mut |step| take(&control, step))
}

fn take(control: &File, step: Step) -> io::Result<()> {
    match step {
        Step::Migrate(cpu) => super::sched::pin(&model::Cpus::one(cpu)),
        Step::SetParameters(parameters) => set_parameters(control, &parameters),
        Step::BecomeRealTime => super::sched::ask(SCHED_LITMUS, 0, None),
    }
}

/// `union litmus_syscall_args`, its member of two arguments; the union is as large as that of four.
#[repr(C)]
struct Arguments {
    pid: i32,
    parameters: *const RtTask,
    rest: [u64; 2],
}

fn set_parameters(control: &File, parameters: &RtTask) -> io::Result<()> {
    let arguments = Arguments { pid: super::sched::tid(), parameters, rest: [0; 2] };
    // SAFETY: the device's ioctl reads an `Arguments` and the `RtTask` that it points to; both
    // outlive the call.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), SET_RT_TASK_PARAM as _, &raw const arguments) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::Reservation;

    /// The kernel's side, as far as admission goes: what `sys_set_rt_task_param`,
    /// `litmus_admit_task` and the plug-ins' `admit_task` refuse.
    struct Kernel {
        plugin: &'static str,
        online: u32,
        at: u32,
        parameters: Option<RtTask>,
        real_time: bool,
    }

    impl Kernel {
        fn booted(plugin: &'static str) -> Self {
            Self { plugin, online: 4, at: 0, parameters: None, real_time: false }
        }

        fn take(&mut self, step: Step) -> io::Result<()> {
            let refused = || Err(io::Error::from_raw_os_error(libc::EINVAL));
            match step {
                // A real-time task is not moved by its affinity.
                Step::Migrate(cpu) if cpu < self.online && !self.real_time => self.at = cpu,
                Step::SetParameters(parameters) => {
                    let sound = parameters.exec_cost > 0
                        && parameters.period > 0
                        && parameters.cpu < self.online
                        && parameters.exec_cost <= parameters.period.min(parameters.relative_deadline)
                        && parameters.class <= 2
                        && parameters.budget <= 2
                        && parameters.release <= 2;
                    if !sound || self.real_time {
                        return refused();
                    }
                    self.parameters = Some(parameters);
                }
                Step::BecomeRealTime => {
                    let Some(parameters) = self.parameters else { return refused() };
                    let here = parameters.cpu == self.at || !is_partitioned(self.plugin);
                    let ranked = (1..PRIORITIES).contains(&parameters.priority) || self.plugin != "P-FP";
                    if !here || !ranked || self.plugin == "Linux" {
                        return refused();
                    }
                    self.real_time = true;
                }
                Step::Migrate(_) => return refused(),
            }
            Ok(())
        }
    }

    fn policy(priority: u32) -> Policy {
        let reservation = Reservation { runtime_ns: 100_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
        Policy::litmus("P-FP", priority, reservation)
    }

    fn admitted(kernel: &mut Kernel, steps: &[Step]) -> bool {
        admit_by(steps, &mut |step| kernel.take(step)).is_ok() && kernel.real_time
    }

    #[test]
    fn a_thread_is_admitted_by_every_plug_in_of_the_paper() {
        for plugin in ["P-FP", "PSN-EDF", "GSN-EDF"] {
            let mut kernel = Kernel::booted(plugin);
            assert!(admitted(&mut kernel, &steps(plugin, &policy(99), 3).unwrap()), "{plugin}");
            let parameters = kernel.parameters.unwrap();
            assert_eq!(
                (parameters.exec_cost, parameters.period, parameters.relative_deadline),
                (100_000, 1_000_000, 1_000_000)
            );
            assert_eq!((parameters.priority, parameters.budget), (HIGHEST, 0));
            assert_eq!(kernel.at, if is_partitioned(plugin) { 3 } else { 0 }, "{plugin}");
        }
    }

    #[test]
    fn every_priority_of_posix_is_one_of_the_plug_in_and_order_is_kept() {
        let of = |priority| match steps("GSN-EDF", &policy(priority), 0).unwrap()[0] {
            Step::SetParameters(parameters) => parameters.priority,
            _ => unreachable!("a global plug-in needs no migration"),
        };
        assert!((1..=99).map(of).is_sorted_by(|low, high| low > high));
        assert_eq!((of(99), of(1)), (1, 99));
    }

    #[test]
    fn a_sequence_in_another_order_or_without_a_step_is_refused() {
        let whole = steps("P-FP", &policy(50), 2).unwrap();
        assert_eq!(whole.len(), 3);
        for left_out in 0..3 {
            let mut some = whole.clone();
            some.remove(left_out);
            assert!(!admitted(&mut Kernel::booted("P-FP"), &some), "without {left_out}");
        }
        for order in [[2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]] {
            let other = order.map(|at: usize| whole[at]);
            assert!(!admitted(&mut Kernel::booted("P-FP"), &other), "{order:?}");
        }
        // Parameters before the migration: the kernel takes both, and the thread is where it says.
        assert!(admitted(&mut Kernel::booted("P-FP"), &[whole[1], whole[0], whole[2]]));
    }

    #[test]
    fn the_kernels_refusals_are_passed_on() {
        let whole = steps("P-FP", &policy(50), 2).unwrap();
        assert!(!admitted(&mut Kernel::booted("Linux"), &whole), "no plug-in admits under the plug-in Linux");
        assert!(!admitted(&mut Kernel { online: 2, ..Kernel::booted("P-FP") }, &whole), "no such CPU");
        let long = Reservation { runtime_ns: 2_000_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
        let long = steps("P-FP", &Policy::litmus("P-FP", 50, long), 2).unwrap();
        assert!(!admitted(&mut Kernel::booted("P-FP"), &long), "more than its deadline");
        assert!(steps("P-FP", &Policy::fifo(3), 0).is_err());
    }

    #[test]
    fn the_structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<RtTask>(), std::mem::offset_of!(RtTask, release)), (56, 48));
        assert_eq!((size_of::<Arguments>(), std::mem::offset_of!(Arguments, parameters)), (32, 8));
    }
}

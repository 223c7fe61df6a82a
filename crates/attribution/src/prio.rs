//! Who goes before whom on a CPU, by the number that the scheduler's events give.

/// A task's effective priority as `sched_switch` gives it (`task_struct.prio`, priority inheritance
/// included): the smaller goes first.
///
/// −1 is `SCHED_DEADLINE`, 0 to 98 real-time priorities 99 to 1, 100 to 139 the fair classes
/// (include/linux/sched/prio.h). The kernel's stopper threads show the number of priority 99 and go
/// before everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prio(i16);

/// The first number of the fair classes (`MAX_RT_PRIO`).
const FAIR: i16 = 100;
/// Of a fair task that is neither nicer nor less nice (`DEFAULT_PRIO`).
const NICE_0: i16 = 120;

/// How the names of the stopper threads begin (kernel/stop_machine.c).
const STOPPER: &[u8] = b"migration/";

impl Prio {
    /// A stopper thread's.
    pub const STOPPER: Self = Self(-2);
    /// Of every task under `SCHED_DEADLINE`: among each other their deadlines decide, which no
    /// event reports.
    pub const DEADLINE: Self = Self(-1);
    /// No event has reported it.
    pub const UNKNOWN: Self = Self(i16::MAX);

    /// The priority in an event.
    #[inline(always)]
    pub fn new(number: i64) -> Self {
        i16::try_from(number).map_or(Self::UNKNOWN, Self)
    }

    /// The number that an event gives for the task of this name, if it gives one. Stopper threads
    /// show the number of the highest real-time priority.
    #[inline(always)]
    pub fn of(number: Option<i64>, comm: &[u8]) -> Self {
        match number {
            Some(0) if comm.starts_with(STOPPER) => Self::STOPPER,
            Some(number) => Self::new(number),
            None => Self::UNKNOWN,
        }
    }

    /// The number; `None` if no event has reported it.
    pub fn number(self) -> Option<i16> {
        self.is_known().then_some(self.0)
    }

    /// Whether it is known.
    #[inline(always)]
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }

    /// Whether it is one of the fair classes.
    #[inline(always)]
    pub fn is_fair(self) -> bool {
        self.is_known() && self.0 >= FAIR
    }

    /// Whether a task of this priority may run while one of `other` waits for the CPU. Fair tasks
    /// share it whatever their weights, and so do those with deadlines. False if one of the two is
    /// unknown.
    #[inline(always)]
    pub fn may_delay(self, other: Self) -> bool {
        self.is_known() && other.is_known() && (self <= other || (self.is_fair() && other.is_fair()))
    }

    /// The real-time priority, 1 to 99; `None` for other classes.
    #[inline(always)]
    pub fn realtime(self) -> Option<i16> {
        (0..FAIR - 1).contains(&self.0).then_some(FAIR - 1 - self.0)
    }

    /// In words: `priority 50`, `nice 0`, `deadline`. FIFO and RR are not distinguished.
    pub fn words(self) -> Option<String> {
        let number = self.number()?;
        Some(match number {
            -2 => "stopper".to_owned(),
            -1 => "deadline".to_owned(),
            ..FAIR => format!("priority {}", FAIR - 1 - number),
            _ => format!("nice {}", number - NICE_0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_number_goes_first_and_fair_tasks_share() {
        let [fifo_50, fifo_10, fair, nice] = [49, 89, 120, 139].map(Prio::new);
        assert!(fifo_50.may_delay(fifo_10) && fifo_50.may_delay(fifo_50) && !fifo_10.may_delay(fifo_50));
        assert!(!fair.may_delay(fifo_10) && fair.may_delay(nice) && nice.may_delay(fair));
        assert!(Prio::DEADLINE.may_delay(fifo_50) && !fifo_50.may_delay(Prio::DEADLINE));
        assert!(Prio::STOPPER.may_delay(Prio::DEADLINE) && !Prio::DEADLINE.may_delay(Prio::STOPPER));
        assert!(!Prio::UNKNOWN.may_delay(fair) && !fifo_50.may_delay(Prio::UNKNOWN));
    }

    #[test]
    fn numbers_are_priorities() {
        let of = |number| Prio::new(number).words().unwrap_or_default();
        assert_eq!([of(49), of(0), of(98)], ["priority 50", "priority 99", "priority 1"]);
        assert_eq!([of(-1), of(120), of(139), of(101)], ["deadline", "nice 0", "nice 19", "nice -19"]);
        assert_eq!((Prio::new(1 << 40), of(1 << 40)), (Prio::UNKNOWN, String::new()));
    }
}

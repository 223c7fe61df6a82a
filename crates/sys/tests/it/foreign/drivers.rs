//! This crate's side, traced: each test runs this test program anew, as the test `life` alone,
//! under a played kernel, and compares what it asked for with the recording of the kernel's
//! library.

use super::cobalt::Cobalt;
use super::kernel::Kernel;
use super::litmus::Litmus;
use super::recording::{self, Recording};
use super::tracer;
use model::Cpus;
use model::sample::{Policy, Reservation};
use std::process::{Command, Stdio};
use sys::{clock, policy, sched};

/// What the traced program is to be, in its environment.
const LIFE: &str = "STILLCORE_LIFE";
/// The CPU that it is on.
const CPU: u32 = 1;
/// The priorities of POSIX that become 1 and 12 of P-FP, which the library was given.
const PRIORITY: u32 = 99;
const LOWER_PRIORITY: u32 = 88;
/// The plug-ins of the OSPERT paper.
const PLUGINS: [&str; 3] = ["P-FP", "PSN-EDF", "GSN-EDF"];

/// All times differ, so that two that are exchanged show.
const RESERVATION: Reservation =
    Reservation { runtime_ns: 100_000, deadline_ns: 900_000, period_ns: 1_000_000 };

/// Runs the life `name` under a kernel; gives its exit code.
fn trace(name: &str, kernel: &mut dyn Kernel) -> i32 {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args(["--exact", "foreign::drivers::life", "--nocapture"]).env(LIFE, name);
    // What it prints of its own would be taken for the outcome of this test program.
    command.stdout(Stdio::null());
    tracer::run(&mut command, kernel).unwrap()
}

/// The calls of a thread's life under a plug-in.
fn calls(plugin: &str, priority: u32) -> Vec<String> {
    let mut kernel = Litmus::booted(plugin).unwrap();
    assert_eq!(trace(&format!("{plugin} {priority}"), &mut kernel), 0, "{:#?}", kernel.lines());
    kernel.lines()
}

/// The traced program. Not a test of its own: without an order it does nothing.
#[test]
fn life() {
    let Ok(order) = std::env::var(LIFE) else { return };
    let (plugin, rest) = order.split_once(' ').unwrap();
    if plugin == "cobalt" {
        return life_in_cobalt(rest.parse().unwrap());
    }
    sched::pin(&Cpus::one(CPU)).unwrap();
    if rest == "over-committed" {
        let reservation = Reservation { runtime_ns: 950_000, ..RESERVATION };
        let refused = policy::set_policy(&Policy::litmus(plugin, PRIORITY, reservation)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        assert_eq!(policy::effective().unwrap(), Policy::other());
        return;
    }
    let policy = Policy::litmus(plugin, rest.parse().unwrap(), RESERVATION);
    if plugin == "Linux" {
        assert_eq!(policy::set_policy(&policy).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        return;
    }
    policy::set_policy(&policy).unwrap();
    assert_eq!(policy::effective().unwrap().name, format!("SCHED_LITMUS {plugin}"));
    policy::leave_class(&policy).unwrap();
    assert_eq!(policy::effective().unwrap(), Policy::other());
}

fn life_in_cobalt(priority: u32) {
    let policy = Policy::cobalt("SCHED_FIFO", priority);
    if priority == 0 {
        assert_eq!(policy::set_policy(&policy).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        return;
    }
    policy::set_policy(&policy).unwrap();
    assert_eq!(policy::effective().unwrap(), policy);
    for release_ns in [5_000_000_700, 5_001_000_700] {
        clock::sleep_until(release_ns);
    }
    policy::leave_class(&policy).unwrap();
}

#[test]
fn a_thread_asks_of_every_plug_in_of_the_paper_what_liblitmus_asks() {
    for plugin in PLUGINS {
        let library = Recording::stored(&format!("litmus-{plugin}")).unwrap();
        assert_eq!(recording::difference(&library.lines, &calls(plugin, PRIORITY)), None, "{plugin}");
    }
    let library = Recording::stored("litmus-P-FP-12").unwrap();
    assert_eq!(recording::difference(&library.lines, &calls("P-FP", LOWER_PRIORITY)), None);
}

/// Every argument of every call is changed in turn, and every call left out.
fn each_planted_difference_is_found(library: &[String], ours: &[String]) {
    for (at, line) in library.iter().enumerate() {
        for argument in line.split(' ').filter(|word| word.contains('=')) {
            let mut other = library.to_vec();
            other[at] = line.replacen(argument, &format!("{argument}0"), 1);
            let found = recording::difference(&other, ours).unwrap();
            assert!(found.starts_with(&format!("call {}", at + 1)), "{argument}: {found}");
        }
        let mut without = library.to_vec();
        without.remove(at);
        assert!(recording::difference(&without, ours).is_some(), "without {line}");
    }
}

#[test]
fn a_planted_difference_of_any_argument_is_found() {
    let library = Recording::stored("litmus-P-FP").unwrap().lines;
    let arguments = library.iter().flat_map(|line| line.split(' ')).filter(|word| word.contains('='));
    assert!(arguments.count() > 20);
    each_planted_difference_is_found(&library, &calls("P-FP", PRIORITY));
    // Planted on our side: another priority, a thread of another plug-in.
    assert!(recording::difference(&library, &calls("P-FP", LOWER_PRIORITY)).unwrap().contains("priority"));
    assert!(recording::difference(&library, &calls("GSN-EDF", PRIORITY)).is_some());
}

#[test]
fn what_the_kernel_refuses_is_passed_on() {
    for (plugin, life) in [("P-FP", "over-committed"), ("Linux", "99")] {
        let mut kernel = Litmus::booted(plugin).unwrap();
        assert_eq!(trace(&format!("{plugin} {life}"), &mut kernel), 0, "{plugin}: {:#?}", kernel.lines());
    }
}

/// Calls of libcobalt that are its main thread's, and not asked for here, each with the reason.
const OF_THE_LIBRARY_ALONE: [(&str, &str); 13] = [
    ("open", "no mutex of Cobalt is used here, so no heap"),
    ("ioctl", "the size of a heap"),
    ("mmap", "a heap"),
    ("close", "a heap"),
    ("mutex_init", "the library's own locks"),
    ("cond_init", "those"),
    ("migrate", "the main thread back to Linux"),
    ("thread_setname", "that of the main thread"),
    ("sched_setscheduler", "the main thread's; here only the one that measures is one of Cobalt"),
    ("thread_setschedparam_ex", "the same"),
    ("get_current", "the same"),
    ("thread_getschedparam_ex", "what a new thread may inherit"),
    ("thread_join", "the creator's part"),
];

#[test]
fn a_thread_asks_of_cobalt_what_libcobalt_asks() {
    let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let threads = recording::by_thread(&Recording::stored("cobalt-fifo-50").unwrap().lines);
    let sleeps = |lines: &&Vec<String>| lines.iter().any(|line| line.starts_with("clock_nanosleep "));
    let measuring: Vec<_> = threads.iter().filter(sleeps).collect();
    assert_eq!(measuring.len(), 1);
    let (process, alone): (Vec<String>, Vec<String>) =
        threads[0].iter().cloned().partition(|line| ["bind", "mlockall"].contains(&name(line).as_str()));
    for line in &alone {
        assert!(OF_THE_LIBRARY_ALONE.iter().any(|(one, _)| *one == name(line)), "{line}");
    }
    for (one, _) in OF_THE_LIBRARY_ALONE {
        assert!(alone.iter().any(|line| name(line) == one), "{one} is not asked for");
    }
    let library = [process, measuring[0].clone()].concat();

    let calls = |priority: u32| {
        let mut kernel = Cobalt::default();
        assert_eq!(trace(&format!("cobalt {priority}"), &mut kernel), 0, "{:#?}", kernel.lines());
        recording::by_thread(&kernel.lines()).concat()
    };
    let ours = calls(50);
    assert_eq!(recording::difference(&library, &ours), None);
    each_planted_difference_is_found(&library, &ours);
    assert!(recording::difference(&library, &calls(51)).unwrap().contains("priority"));
    calls(0);
}

/// Prints what a program asks for that is linked with a library of such a kernel, as a recording to
/// be stored. Without an order it does nothing.
#[test]
fn record() {
    let Ok(order) = std::env::var("STILLCORE_RECORD") else { return };
    let mut words = order.split(' ');
    let mut kernel: Box<dyn Kernel> = match words.next().unwrap() {
        "cobalt" => Box::new(Cobalt::default()),
        plugin => Box::new(Litmus::booted(plugin).unwrap()),
    };
    let mut command = Command::new(words.next().unwrap());
    let code = tracer::run(command.args(words), &mut *kernel).unwrap();
    println!("\n# exit code {code}\n{}", kernel.lines().join("\n"));
}

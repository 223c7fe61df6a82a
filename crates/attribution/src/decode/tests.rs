//! Records as kernels write them, and their meaning.

use super::*;
use crate::attribute::delay::Blocking;
use model::user_frames::UserFrame;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

/// A decoder for one event with the given fields, and the names under which it was recorded.
fn decoder(name: &str, fields: &str) -> (Decoder, EventCatalogue) {
    let catalogue = EventCatalogue::embedded().unwrap();
    let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
    let (system, event) = name.split_once(':').unwrap();
    formats.add(system, &format!("name: {event}\nID: 7\nformat:\n{COMMON}{fields}")).unwrap();
    (
        Decoder::new(
            &catalogue,
            &formats,
            Symbols::parse("ffffffff81000000 t tick_nohz_handler.llvm.9\n"),
            &Constants::parse("0xffff800009c50b70 : \"Rescheduling interrupts\"\n"),
        ),
        catalogue,
    )
}

fn decode(decoder: &mut Decoder, flags: u8, data: &[u8]) -> KernelEvent {
    decoder.decode(&Event { ts_ns: 5, cpu: 2, id: 7, flags, pid: 9, data }).unwrap()
}

#[test]
fn the_filter_holds_for_traces_recorded_without_it() {
    let (mut tlb, _) = decoder("tlb:tlb_flush", "\tfield:int reason;\toffset:8;\tsize:4;\tsigned:1;\n");
    let mut what = |reason: u8| decode(&mut tlb, 0, &[7, 0, 0, 0, 9, 0, 0, 0, reason, 0, 0, 0]).what;
    assert!(matches!(what(1), What::Instant { class: EventClass::Tlb, .. }));
    assert_eq!(what(0), What::Other);
}

#[test]
fn a_function_is_named_without_its_clone_and_decides_the_class() {
    let fields = "\tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\
                  \tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n";
    let (mut expire, _) = decoder("timer:hrtimer_expire_entry", fields);
    let mut data = vec![0u8; 24];
    data[16..].copy_from_slice(&0xffff_ffff_8100_0000u64.to_le_bytes());
    let What::Enter { class, label, .. } = decode(&mut expire, 8, &data).what else { panic!() };
    assert_eq!((class, expire.labels().text(label)), (EventClass::TimerTick, "tick_nohz_handler"));
    data[16] = 1;
    let What::Enter { class, label, .. } = decode(&mut expire, 8, &data).what else { panic!() };
    assert_eq!((class, expire.labels().text(label)), (EventClass::TimerHrtimer, "0xffffffff81000001"));
}

#[test]
fn an_arm64_ipi_is_named_by_the_text_its_reason_points_to() {
    let fields = "\tfield:const char * reason;\toffset:8;\tsize:8;\tsigned:0;\n";
    let (mut ipi, catalogue) = decoder("ipi:ipi_entry", fields);
    let mut data = vec![0u8; 16];
    data[8..].copy_from_slice(&0xffff_8000_09c5_0b70u64.to_le_bytes());
    let What::Enter { class, label, .. } = decode(&mut ipi, 8, &data).what else { panic!() };
    assert_eq!((class, ipi.labels().text(label)), (EventClass::IpiResched, "Rescheduling interrupts"));
    let seen = ipi.observable(&catalogue, &["ipi:ipi_entry".to_owned()]);
    assert!(seen.contains(&EventClass::IpiResched) && seen.contains(&EventClass::IpiIrqwork));
}

#[test]
fn an_event_without_its_fields_is_said_to_be_unreadable_and_not_observed() {
    let (decoder, catalogue) =
        decoder("sched:sched_switch", "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n");
    assert_eq!(decoder.unreadable(), ["sched:sched_switch has no field prev_comm"]);
    assert!(decoder.observable(&catalogue, &["sched:sched_switch".to_owned()]).is_empty());
}

/// As 6.1 writes it.
const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                      \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
                      \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
                      \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
                      \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";

fn switched(prev: (&str, i32, i32), state: u64, next: (&str, i32, i32)) -> Vec<u8> {
    let name = |comm: &str| {
        let mut name = [0u8; 16];
        name[..comm.len()].copy_from_slice(comm.as_bytes());
        name
    };
    let mut data = vec![7, 0, 0, 0, 9, 0, 0, 0];
    for ((comm, pid, prio), state) in [(prev, Some(state)), (next, None)] {
        data.extend(name(comm));
        data.extend(pid.to_le_bytes());
        data.extend(prio.to_le_bytes());
        data.extend(state.into_iter().flat_map(u64::to_le_bytes));
    }
    data
}

#[test]
fn a_switch_names_both_tasks_with_their_priorities_and_names_stay_known() {
    let (mut decoder, _) = decoder("sched:sched_switch", SWITCH);
    let (asleep, preempted) = (1, 0x100);
    let record = switched(("hackbench", 15_575, 120), preempted, ("ktimers/2", 30, 98));
    let What::Switch { prev, runnable, next } = decode(&mut decoder, 0, &record).what else { panic!() };
    assert_eq!((prev.pid, prev.prio, runnable), (15_575, crate::prio::Prio::new(120), true));
    assert!(next.softirqd && !prev.softirqd);
    assert_eq!(decoder.comm(15_575), Some("hackbench"));
    let record = switched(("make", 15_575, 120), asleep, ("migration/2", 21, 0));
    let What::Switch { runnable, next, .. } = decode(&mut decoder, 0, &record).what else { panic!() };
    assert_eq!((runnable, next.prio), (false, crate::prio::Prio::STOPPER));
    assert_eq!((decoder.comm(15_575), decoder.comm(4)), (Some("make"), None));
}

#[test]
fn a_stack_is_read_by_the_names_of_its_functions() {
    let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
    let fields = "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
                  \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
    formats.add("ftrace", &format!("name: kernel_stack\nID: 7\nformat:\n{COMMON}{fields}")).unwrap();
    let names = ["__schedule", "schedule", "do_wait.isra.0", "__do_sys_wait4", "do_syscall_64"];
    let at = |place: usize| 0xffff_ffff_8100_0000 + place as u64 * 0x100;
    let symbols = names.iter().enumerate().map(|(place, name)| format!("{:x} t {name}\n", at(place)));
    let catalogue = EventCatalogue::embedded().unwrap();
    let symbols = Symbols::parse(&symbols.collect::<String>());
    let mut decoder = Decoder::new(&catalogue, &formats, symbols, &Constants::default());
    let mut data = vec![0; 8];
    data.extend(5u64.to_le_bytes());
    data.extend((0..5).flat_map(|place| (at(place) + 0x10).to_le_bytes()));
    // Twice: the second time the stack is known by its addresses.
    for _ in 0..2 {
        let What::Stack { at_switch, code: Some(code), .. } = decode(&mut decoder, 0, &data).what else {
            panic!()
        };
        let text = |id: Option<LabelId>| decoder.labels().text(id.unwrap()).to_owned();
        assert_eq!(
            (at_switch, text(code.began), text(code.site), text(code.frames)),
            (true, "system call wait4".into(), "do_wait".into(), "do_wait".into())
        );
    }
    // An address far behind the last symbol is not in its function.
    data.truncate(16);
    data[8] = 2;
    data.extend([at(4) + (1 << 20), at(4) + 0x10].iter().flat_map(|address| address.to_le_bytes()));
    let What::Stack { act, .. } = decode(&mut decoder, 0, &data).what else { panic!() };
    assert_eq!((act.site, act.frames), (None, None));
}

#[test]
fn a_cpu_goes_to_sleep_in_a_state_that_its_driver_has_described() {
    let fields = "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\
                  \tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n";
    let state = |name: &str, exit_latency_us| IdleState { name: name.to_owned(), exit_latency_us };
    let states = IdleStates::from([(2, [(0, state("POLL", 0)), (1, state("C6", 133))].into())]);
    let (decoder, _) = decoder("power:cpu_idle", fields);
    let mut decoder = decoder.knowing(&states, &FrequencyChanges::default());
    let mut what = |state: u32| {
        let mut data = vec![0u8; 8];
        data.extend([state, 2].into_iter().flat_map(u32::to_le_bytes));
        decode(&mut decoder, 0, &data).what
    };
    assert_eq!([what(0), what(2), what(u32::MAX)], [What::Idle(None), What::Idle(None), What::Awake]);
    let What::Idle(Some(view::IdleState { label, exit_ns })) = what(1) else { panic!() };
    assert_eq!((decoder.labels().text(label), exit_ns), ("C6, at most 133 us to leave", 133_000));
}

#[test]
fn a_frequency_changes_on_the_cpu_that_the_event_names_and_takes_what_its_driver_says() {
    let fields = "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\
                  \tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n";
    let (decoder, _) = decoder("power:cpu_frequency", fields);
    let mut decoder = decoder.knowing(&IdleStates::default(), &[(5, 20_000)].into());
    let mut what = |cpu: u32| {
        let mut data = vec![0u8; 8];
        data.extend([1_200_000, cpu].into_iter().flat_map(u32::to_le_bytes));
        decode(&mut decoder, 0, &data).what
    };
    assert_eq!(what(2), What::Frequency { cpu: 2, change: None });
    let What::Frequency { cpu: 5, change: Some(view::Change { label, most_ns }) } = what(5) else { panic!() };
    assert_eq!((decoder.labels().text(label), most_ns), ("to 1200 MHz, at most 20 us", 20_000));
}

fn blocking(name: &str, fields: &str, data: &[u8]) -> (What, Decoder) {
    let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
    let (system, event) = name.split_once(':').unwrap();
    formats.add(system, &format!("name: {event}\nID: 7\nformat:\n{COMMON}{fields}")).unwrap();
    let symbols = "ffffffff81000000 T _stext\nffffffff81000100 t do_idle\nffffffff82000000 d a_lock\n";
    let catalogue = EventCatalogue::embedded().unwrap();
    let mut decoder = Decoder::new(&catalogue, &formats, Symbols::parse(symbols), &Constants::default());
    (decode(&mut decoder, 0, data).what, decoder)
}

#[test]
fn an_inherited_priority_is_decoded() {
    let fields = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
                  \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                  \tfield:int oldprio;\toffset:28;\tsize:4;\tsigned:1;\n\
                  \tfield:int newprio;\toffset:32;\tsize:4;\tsigned:1;\n";
    let mut data = vec![0u8; 24];
    data.extend([135i32, 120, 4].iter().flat_map(|number| number.to_le_bytes()));
    let (what, _) = blocking("sched:sched_pi_setprio", fields, &data);
    assert_eq!(what, What::Prio { pid: 135, prio: crate::prio::Prio::new(4) });
}

#[test]
fn locks_are_named_by_kind_and_symbol_and_interrupts_off_by_the_function_at_its_offset() {
    let fields = "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
                  \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n";
    let mut data = vec![0u8; 24];
    data[8..16].copy_from_slice(&0xffff_ffff_8200_0000u64.to_le_bytes());
    for (flags, text, sleeps) in [
        (1u8, "spinning lock a_lock", false),
        (3, "spinning lock a_lock (read)", false),
        (4, "rwsem a_lock (write)", true),
        (8, "rt_mutex a_lock", true),
        (18, "percpu_rwsem a_lock (read)", true),
        (32, "mutex a_lock", true),
        (33, "mutex a_lock", false),
    ] {
        data[16] = flags;
        let (what, decoder) = blocking("lock:contention_begin", fields, &data);
        let What::Blocked { label, sleeps: slept, lock, .. } = what else { panic!("{what:?}") };
        assert_eq!((decoder.labels().text(label), slept, lock), (text, sleeps, 0xffff_ffff_8200_0000));
    }
    data[8] = 8;
    let (what, decoder) = blocking("lock:contention_begin", fields, &data);
    let What::Blocked { label, .. } = what else { panic!() };
    assert_eq!(decoder.labels().text(label), "mutex", "a lock inside something else has no name");
    let fields = "\tfield:s32 caller_offs;\toffset:8;\tsize:4;\tsigned:1;\n\
                  \tfield:s32 parent_offs;\toffset:12;\tsize:4;\tsigned:1;\n";
    let mut data = vec![0u8; 16];
    data[12..14].copy_from_slice(&0x120u16.to_le_bytes());
    let (what, decoder) = blocking("preemptirq:preempt_disable", fields, &data);
    let What::Blocked { label, blocking: off, .. } = what else { panic!("{what:?}") };
    assert_eq!((decoder.labels().text(label), off), ("do_idle", Blocking::PreemptionOff));
    let (what, _) = blocking("preemptirq:irq_enable", fields, &data);
    assert_eq!(what, What::Unblocked { blocking: Blocking::InterruptsOff, lock: 0 });
}

#[test]
fn the_ends_of_a_probed_function_are_known_by_their_names() {
    let (entered, decoder) = blocking("stillcore:in_free_pcppages_bulk", "", &[0; 16]);
    let What::Blocked { blocking: Blocking::ProbedFunction, label, lock, sleeps: false } = entered else {
        panic!("{entered:?}")
    };
    assert_eq!((decoder.labels().text(label), lock), ("free_pcppages_bulk", u64::from(label)));
    let (returned, _) = blocking("stillcore:out_free_pcppages_bulk", "", &[0; 16]);
    assert!(matches!(returned, What::Unblocked { blocking: Blocking::ProbedFunction, .. }));
    assert_eq!(blocking("other:in_free_pcppages_bulk", "", &[0; 16]).0, What::Other);
}

#[test]
fn only_what_was_recorded_is_observed() {
    let (decoder, catalogue) = decoder("irq_vectors:reschedule_entry", "");
    let recorded = ["irq_vectors:reschedule_entry".to_owned()];
    assert_eq!(decoder.observable(&catalogue, &recorded), BTreeSet::from([EventClass::IpiResched]));
    assert!(decoder.observable(&catalogue, &[]).is_empty());
}

#[test]
fn interrupts_do_not_speak_for_the_task_they_interrupt() {
    let (mut plain, _) = decoder("irq_vectors:reschedule_entry", "");
    let [task, softirq, hard] = [Level::Task, Level::Softirq, Level::Hard];
    for (flags, level) in
        [(0x00, task), (0x05, task), (0x08, hard), (0x10, softirq), (0x18, hard), (0x40, hard)]
    {
        assert_eq!(decode(&mut plain, flags, &[0; 8]).level, level, "{flags:#x}");
    }
}

/// Decodes a user-space stack and then, at that level and in that task, a kernel stack; returns
/// its frames.
fn after_user_stack(level: u8, task: i32, between: bool) -> (Option<String>, What) {
    let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
    let callers = "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
    let stack = |name: &str, id: u16, field: &str| {
        format!(
            "name: {name}\nID: {id}\nformat:\n{COMMON}\tfield:{field};\toffset:8;\tsize:4;\tsigned:0;\n{callers}"
        )
    };
    formats.add("ftrace", &stack("kernel_stack", 7, "int size")).unwrap();
    formats.add("ftrace", &stack("user_stack", 8, "unsigned int tgid")).unwrap();
    formats.add("irq_vectors", &format!("name: nothing\nID: 9\nformat:\n{COMMON}")).unwrap();
    let symbols = Symbols::parse("ffffffff81000000 t vfs_write\nffffffff81000100 t do_syscall_64\n");
    let catalogue = EventCatalogue::embedded().unwrap();
    let mut decoder = Decoder::new(&catalogue, &formats, symbols, &Constants::default());
    let frame = |address, function: &str| UserFrame { tgid: 70, address, function: function.to_owned() };
    let frames = vec![frame(0x1000, "write (libc.so.6)"), frame(0x2000, "main (server)")];
    decoder.users.knows(UserFrames { schema: user_frames::SCHEMA.to_owned(), frames });
    let record = |first: u64, addresses: &[u64]| {
        let mut data = vec![0u8; 8];
        data.extend(first.to_le_bytes());
        data.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
        data
    };
    let mut say = |cpu: u32, id: u16, flags: u8, pid: i32, data: &[u8]| {
        decoder.decode(&Event { ts_ns: 5, cpu, id, flags, pid, data }).unwrap().what
    };
    let users = say(2, 8, 0, 71, &record(70, &[0x1000, 0x3000, 0x2000, 0, 0, 0, 0, 0]));
    // What another CPU records meanwhile does not matter.
    say(3, 9, 0, 5, &[0; 8]);
    if between {
        say(2, 9, 0, 71, &[0; 8]);
    }
    let kernel = [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0110];
    let What::Stack { act, .. } = say(2, 7, level, task, &record(2, &kernel)) else { panic!() };
    (act.frames.map(|frames| decoder.labels().text(frames).to_owned()), users)
}

#[test]
fn a_kernel_stack_goes_on_in_the_program_that_called_it() {
    let (frames, users) = after_user_stack(0, 71, false);
    assert_eq!(users, What::UserStack);
    // An address without a name stays a number.
    assert_eq!(frames.as_deref(), Some("vfs_write\nwrite (libc.so.6) < 0x3000 < main (server)"));
}

#[test]
fn an_interrupt_another_task_and_another_event_are_not_the_program_s() {
    assert_eq!(after_user_stack(8, 71, false).0.as_deref(), Some("vfs_write"));
    assert_eq!(after_user_stack(0, 72, false).0.as_deref(), Some("vfs_write"));
    assert_eq!(after_user_stack(0, 71, true).0.as_deref(), Some("vfs_write"));
}

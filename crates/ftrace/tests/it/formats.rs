//! Event formats of several kernel generations: fields are found whatever their order, type and
//! place.

use ftrace::{Endian, EventFormat, FieldKind, Formats};
use proptest::prelude::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

fn format(name: &str, fields: &str) -> EventFormat {
    EventFormat::parse(
        "test",
        &format!("name: {name}\nID: 77\nformat:\n{COMMON}{fields}\nprint fmt: \"x\"\n"),
    )
    .unwrap()
}

#[test]
fn all_formats_of_the_fixture_parse() {
    let input = crate::common::input("whole");
    for (system, text) in &input.formats {
        let format = EventFormat::parse(system, std::str::from_utf8(text).unwrap()).unwrap();
        assert_eq!(format.full_name(), format!("{system}:{}", format.name));
        // Fields lie behind each other: nothing was misread.
        let mut end = 0;
        for field in &format.fields {
            assert!(field.offset >= end, "{} {}", format.full_name(), field.name);
            end = field.offset + field.size;
        }
    }
}

#[test]
fn a_function_event_ends_in_an_open_array() {
    let input = crate::common::input("whole");
    let formats = crate::common::formats(&input);
    let function = formats.by_name("ftrace:function").unwrap();
    let args = function.field("args").unwrap();
    assert_eq!((args.kind, args.type_name.as_str(), args.size), (FieldKind::Tail, "unsigned long", 0));
    let print = formats.by_name("print").unwrap();
    let mut record = vec![0; 16];
    record.extend(b"hello\n\0\0");
    assert_eq!(print.field("buf").unwrap().text(&record, Endian::Little).unwrap(), "hello\n");
}

#[test]
fn declarations_of_every_kind() {
    let fields = "\tfield:char comm[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;\n\
                  \tfield:const struct sched_entity * se;\toffset:24;\tsize:8;\tsigned:0;\n\
                  \tfield:__u32 words[3];\toffset:32;\tsize:12;\tsigned:0;\n\
                  \tfield:__data_loc char[] name;\toffset:44;\tsize:4;\tsigned:1;\n\
                  \tfield:__rel_loc u32[] cpus;\toffset:48;\tsize:4;\tsigned:0;\n\
                  \tfield:short level;\toffset:52;\tsize:2;\tsigned:1;\n\
                  \tfield:bool last;\toffset:54;\tsize:1;\tsigned:0;\n";
    let format = format("kinds", fields);
    let kind = |name: &str| format.field(name).unwrap().kind;
    assert_eq!(kind("comm"), FieldKind::Array { count: 16, element_size: 1 });
    assert_eq!(kind("se"), FieldKind::Scalar);
    assert_eq!(format.field("se").unwrap().type_name, "const struct sched_entity *");
    assert_eq!(kind("words"), FieldKind::Array { count: 3, element_size: 4 });
    assert_eq!((kind("name"), kind("cpus")), (FieldKind::DataLoc, FieldKind::RelLoc));
    assert_eq!(format.field("name").unwrap().type_name, "char");

    let mut record = vec![0_u8; 56];
    record[8..13].copy_from_slice(b"task\0");
    record[44..48].copy_from_slice(&0x0006_0038_u32.to_le_bytes());
    record[48..52].copy_from_slice(&0x0004_000a_u32.to_le_bytes());
    record[52..54].copy_from_slice(&(-3_i16).to_le_bytes());
    record.extend(b"eth0\0\0");
    record.extend([0xaa, 0xbb, 0xcc, 0xdd]);
    let get = |name: &str| format.field(name).unwrap();
    let little = Endian::Little;
    assert_eq!(get("comm").text(&record, little).unwrap(), "task");
    assert_eq!(get("name").text(&record, little).unwrap(), "eth0");
    assert_eq!(get("cpus").bytes(&record, little).unwrap(), [0xaa, 0xbb, 0xcc, 0xdd]);
    assert_eq!(get("level").int(&record, little), Some(-3));
    assert_eq!(get("level").uint(&record, little), Some(0xfffd));
    assert_eq!(get("last").int(&record, little), Some(0));
    // Numbers are not texts, texts are not numbers, and words are neither.
    assert_eq!(get("level").text(&record, little), None);
    assert_eq!(get("comm").int(&record, little), None);
    assert_eq!(get("words").text(&record, little), None);
    assert_eq!(get("cpus").text(&record, little), None);
}

#[test]
fn common_fields_of_an_rt_kernel_are_found_by_name() {
    // 5.10-rt: more common fields, the event's own fields further back.
    let text = "name: sched_waking\nID: 300\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
                \tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n\
                \tfield:unsigned char common_preempt_lazy_count;\toffset:9;\tsize:1;\tsigned:0;\n\n\
                \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:1;\n\
                \tfield:pid_t pid;\toffset:28;\tsize:4;\tsigned:1;\n";
    let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
    formats.add("sched", text).unwrap();
    assert_eq!(formats.common().pid, 4);
    let waking = formats.by_id(300).unwrap();
    assert_eq!(waking.field("pid").unwrap().offset, 28);
    assert!(formats.by_id(301).is_none() && formats.by_id(0).is_none());
    assert!(formats.by_name("irq:sched_waking").is_none());
}

#[test]
fn broken_formats_say_which_line() {
    let cases = [
        ("", "line 1: ``, expected a line `name: NAME`"),
        ("name: x\nformat:\n", "format of test:x: line 1: `name: x`, expected a line `ID: NUMBER`"),
        ("name: x\nID: 70000\n", "format of test:x: line 2: `ID: 70000`"),
        ("name: x\nID: 7\nformat:\n\tfield:int;\toffset:0;\tsize:4;\n", "line 4: `field:int;\toffset:0;"),
        ("name: x\nID: 7\n\tfield:int a;\toffset:-1;\tsize:4;\n", "line 3"),
        ("name: x\nID: 7\n\tfield:int a;\toffset:99999999999;\tsize:4;\n", "line 3"),
    ];
    for (text, expected) in cases {
        let error = EventFormat::parse("test", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "(name: |ID: |field:|[a-z0-9_ ;:\\[\\]\\*\t\n]|offset:[0-9]{1,4};|size:[0-9]{1,3};){0,60}") {
        if let Ok(format) = EventFormat::parse("fuzz", &text) {
            let record: Vec<u8> = (0..64).collect();
            for field in &format.fields {
                for endian in [Endian::Little, Endian::Big] {
                    let _ = (field.int(&record, endian), field.uint(&record, endian), field.text(&record, endian));
                    if let Some(bytes) = field.bytes(&record, endian) {
                        prop_assert!(bytes.len() <= record.len());
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_come_out_as_they_went_in(value in any::<i64>(), size in prop_oneof![Just(1_usize), Just(2), Just(4), Just(8)], signed in any::<bool>(), big in any::<bool>()) {
        let format = format("n", &format!("\tfield:x_t v;\toffset:8;\tsize:{size};\tsigned:{};\n", u8::from(signed)));
        let (endian, bytes) = if big {
            (Endian::Big, value.to_be_bytes()[8 - size..].to_vec())
        } else {
            (Endian::Little, value.to_le_bytes()[..size].to_vec())
        };
        let record = [vec![0; 8], bytes].concat();
        let shift = 64 - 8 * size as u32;
        let kept = if signed { value << shift >> shift } else { ((value as u64) << shift >> shift) as i64 };
        let field = format.field("v").unwrap();
        prop_assert_eq!(field.int(&record, endian), Some(kept));
        prop_assert_eq!(field.uint(&record, endian), Some((value as u64) << shift >> shift));
        prop_assert_eq!(field.int(&record[..record.len() - 1], endian), None);
    }
}

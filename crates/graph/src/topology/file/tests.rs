//! What is written is read as the same graph, and what is wrong is one sentence.

use super::super::By;
use super::*;
use proptest::prelude::*;

const SMALL: &str = r#"
schema = "stillcore.graph/1"
name = "small"
about = "A sensor and what controls it."

[[process]]
name = "io"

[[process]]
name = "control"

[[executor]]
name = "sensor"
process = "io"

[[executor]]
name = "control"
process = "control"
policy = "deadline"
runtime = "1ms"
period = "125ms"
cpus = "2-3"
threads = 2

[[node]]
name = "sensor"
executor = "sensor"
timer = [{ name = "sample", period = "125ms", offset = "5ms", then = { reads = true, publishes = ["raw"] } }]
publisher = [{ topic = "raw", bytes = 64, qos = { depth = 1, reliability = "best_effort" } }]

[[node]]
name = "control"
executor = "control"
subscriber = [{ topic = "raw", qos = { reliability = "best_effort" }, then = { computes = "attitude", publishes = ["command"] } }]
publisher = [{ topic = "command", bytes = 32 }]
server = [{ service = "mode", type = "stamped10b", computes = "busy:50us" }]

[[node]]
name = "wheel"
executor = "sensor"
subscriber = [{ topic = "command", then = { compares = true } }]
client = [{ service = "mode", type = "stamped10b", period = "1s" }]

[[topic]]
name = "raw"
transport = "pipe"

[[chain]]
name = "loop"
topics = ["raw", "command"]
"#;

fn parse(text: &str) -> Result<Graph, Error> {
    read(Path::new("g.toml"), text)
}

#[test]
fn a_graph_says_what_its_file_says() {
    let graph = parse(SMALL).unwrap();
    assert_eq!(graph.executors[1].policy.as_ref().unwrap().reservation.unwrap().deadline_ns, 125_000_000);
    assert_eq!((graph.executors[1].process, graph.executors[1].threads), (1, 2));
    assert_eq!(graph.nodes[0].timers[0].offset_ns, 5_000_000);
    assert_eq!(graph.nodes[1].servers[0].bytes, 10);
    assert_eq!(graph.topics[0].transport.as_deref(), Some("pipe"));
    let (edges, unmatched) = super::super::edges::edges(&graph);
    assert_eq!((edges.len(), unmatched.len()), (4, 0), "{unmatched:?}");
}

#[test]
fn what_is_written_is_read_as_the_same_graph() {
    let graph = parse(SMALL).unwrap();
    assert_eq!(parse(&write(&graph).unwrap()).unwrap(), graph);
}

#[test]
fn a_json_topology_survives_as_toml() {
    let texts = [
        (Path::new("robot.json"), include_str!("../../../fixtures/every-key.json").to_owned()),
        (Path::new("listener.json"), include_str!("../../../fixtures/listener.json").to_owned()),
    ];
    let (graph, _) = irobot::read(&texts).unwrap();
    assert_eq!(parse(&write(&graph).unwrap()).unwrap(), graph);
}

#[test]
fn what_is_wrong_is_one_sentence() {
    for (from, to, expected) in [
        ("threads = 2", "thread = 2", "g.toml: line LINE: unknown field `thread`"),
        ("threads = 2", "threads = 0", "g.toml: executor \"control\": threads = 0; expected 1 to 64"),
        (
            "\"deadline\"",
            "\"fifo\"",
            "g.toml: executor \"control\": runtime, deadline or period; expected policy",
        ),
        (
            "stillcore.graph/1",
            "stillcore.graph/9",
            "g.toml: schema: \"stillcore.graph/9\"; expected stillcore.graph/1",
        ),
        ("\"125ms\", offset", "\"125\", offset", "g.toml: line LINE: \"125\" is no length of time"),
        ("computes = \"attitude\"", "computes = \"sleep\"", "g.toml: line LINE: \"sleep\" is no computation"),
        (
            "bytes = 32",
            "bytes = 31",
            "g.toml: node \"control\", subscriber of \"raw\": \"command\" has 31 bytes",
        ),
        (
            "publishes = [\"raw\"]",
            "publishes = []",
            "g.toml: node \"sensor\": topic \"raw\", which nothing publishes",
        ),
        (
            "[\"raw\", \"command\"]",
            "[\"command\", \"raw\"]",
            "g.toml: chain \"loop\": \"raw\" after \"command\"",
        ),
        (
            "process = \"io\"",
            "process = \"oi\"",
            "g.toml: executor \"sensor\": process \"oi\"; expected the name of an entry",
        ),
        (
            "name = \"wheel\"",
            "name = \"sensor\"",
            "g.toml: two of node \"sensor\"; expected names that are unique",
        ),
    ] {
        let line = SMALL[..SMALL.find(from).unwrap()].matches('\n').count() + 1;
        let expected = expected.replace("LINE", &line.to_string());
        let error = parse(&SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with(&expected), "{error}");
        assert!(!error.contains('\n'));
    }
}

/// A tick that a signal makes, in an executor of its own.
const SIGNALLED: &str = r#"
schema = "stillcore.graph/1"
executor = [{ name = "tick", threads = 1 }, { name = "rest" }]

[[node]]
name = "clock"
executor = "tick"
timer = [{ name = "tick", period = "1ms", by = "signal", then = { publishes = ["tick"] } }]
publisher = [{ topic = "tick", bytes = 8 }]

[[node]]
name = "listener"
executor = "rest"
subscriber = [{ topic = "tick" }]
"#;

#[test]
fn a_timer_by_signal_has_its_thread_to_itself() {
    let graph = parse(SIGNALLED).unwrap();
    assert_eq!(graph.nodes[0].timers[0].by, By::Signal);
    assert_eq!(parse(&write(&graph).unwrap()).unwrap(), graph);
    for (from, to) in [
        ("threads = 1", "threads = 2"),
        ("executor = \"rest\"", "executor = \"tick\""),
        ("bytes = 8 }]", "bytes = 8, period = \"1ms\" }]"),
        ("timer = [", "timer = [{ name = \"other\", period = \"1ms\" }, "),
    ] {
        let error = parse(&SIGNALLED.replacen(from, to, 1)).unwrap_err().to_string();
        assert_eq!(
            error,
            "g.toml: node \"clock\", timer \"tick\": by = \"signal\" in an executor that has more to do; expected an executor of one \
             thread with no other timer and nothing to receive"
        );
    }
    let error = parse(&SIGNALLED.replace("\"signal\"", "\"post\"")).unwrap_err().to_string();
    assert!(error.contains("line 8") && error.contains("unknown variant `post`"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_a_graph_or_one_line(at in 0usize..SMALL.len(), byte in 32u8..127) {
        let mut bytes = SMALL.as_bytes().to_vec();
        bytes[at] = byte;
        match parse(&String::from_utf8(bytes).unwrap()) {
            Ok(graph) => prop_assert_eq!(parse(&write(&graph).unwrap()).unwrap(), graph),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}

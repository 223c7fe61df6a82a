//! Topology files of our own, with every key of the format; the counts and the rules that follow
//! from them.

use super::super::edges::{EdgeKind, counts, edges};
use super::*;
use proptest::prelude::*;

const EVERY_KEY: &str = include_str!("../../../fixtures/every-key.json");
const LISTENER: &str = include_str!("../../../fixtures/listener.json");

fn read_one(text: &str) -> Result<Read, Error> {
    read(&[(Path::new("dir/robot.json"), text.to_owned())])
}

#[test]
fn every_key_is_understood() {
    let (graph, warnings) = read_one(EVERY_KEY).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((graph.name.as_str(), graph.processes.len(), graph.executors.len()), ("robot", 1, 3));
    let names: Vec<_> = graph.nodes.iter().map(Node::full_name).collect();
    assert_eq!(
        names,
        ["camera", "/left/arm", "watcher_1", "watcher_2", "/team_1/member_1", "/team_2/member_2"]
    );
    let camera = &graph.nodes[0];
    assert_eq!(camera.publishers[0].period_ns, Some(66_666_000));
    assert_eq!((camera.publishers[0].bytes, camera.publishers[0].pass_by), (300_000, PassBy::SharedPtr));
    let qos = camera.publishers[1].qos;
    assert_eq!((qos.history, qos.depth, qos.reliability), (History::KeepAll, 3, Reliability::BestEffort));
    assert_eq!((qos.durability, qos.liveliness), (Durability::TransientLocal, Liveliness::ManualByTopic));
    assert_eq!(camera.publishers[1].pass_by, PassBy::LoanedMsg);
    assert_eq!(camera.clients[0].period_ns, 15_625_000);
    assert_eq!(graph.nodes[1].servers[0].bytes, 10);
}

#[test]
fn edges_follow_names_namespaces_and_profiles() {
    let (graph, _) = read_one(EVERY_KEY).unwrap();
    let (edges, unmatched) = edges(&graph);
    let of = |topic: &str| edges.iter().filter(|edge| edge.topic == topic).count();
    // Two watchers; a relative topic of another namespace is another topic.
    assert_eq!((of("frames"), of("left/state"), of("state")), (2, 1, 0));
    assert_eq!((of("reset/request"), of("reset/response")), (1, 1));
    assert!(
        unmatched.iter().any(|line| line.contains("state") && line.contains("nobody publishes")),
        "{unmatched:?}"
    );
    let counted = counts(&graph, &edges);
    assert_eq!((counted.publishers, counted.topics, counted.subscribers), (3, 3, 6));
    let frames = edges.iter().find(|edge| edge.topic == "frames").unwrap();
    assert_eq!((frames.kind, frames.period_ns), (EdgeKind::Topic, Some(66_666_000)));
}

#[test]
fn several_files_are_several_processes() {
    let texts =
        [(Path::new("robot.json"), EVERY_KEY.to_owned()), (Path::new("listener.json"), LISTENER.to_owned())];
    let (graph, warnings) = read(&texts).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((graph.name.as_str(), graph.processes.len()), ("robot+listener", 2));
    let (edges, _) = edges(&graph);
    let between = edges.iter().filter(|edge| {
        let process = |node: usize| graph.executors[graph.nodes[node].executor].process;
        process(edge.from.node) != process(edge.to.node)
    });
    assert_eq!(between.count(), 2);
    // The same file twice is two processes with names of their own.
    let twice = [(Path::new("a.json"), LISTENER.to_owned()), (Path::new("a.json"), LISTENER.to_owned())];
    let names: Vec<_> = read(&twice).unwrap().0.processes.into_iter().map(|process| process.name).collect();
    assert_eq!(names, ["a", "a-2"]);
    let error = super::super::file::write(&read(&twice).unwrap().0).unwrap_err().to_string();
    assert!(error.contains("two of node"), "{error}");
}

#[test]
fn unknown_keys_are_reported_with_their_place() {
    let text = r#"{
  "nodes": [
    {"node_name": "a", "excutor_id": 3,
     "publishers": [{"topic_name": "t", "msg_type": "stamped10b", "freq_hz": 10,
                     "period_ms": 5, "msg_size": 7, "qos_dept": 3}],
     "subscribers": [{"topic_name": "t", "msg_type": "stamped10b", "msg_pass_by": "loaned_msg"}]}
  ],
  "version": 2
}"#;
    let (graph, warnings) = read_one(text).unwrap();
    assert_eq!(
        warnings,
        [
            "dir/robot.json: line 8: version of a file is not known and has no effect",
            "dir/robot.json: line 3: excutor_id of a node is not known and has no effect",
            "dir/robot.json: line 5: qos_dept of a publisher is not known and has no effect",
            "dir/robot.json: line 5: msg_size has no effect: only vectors have a size of their own",
            "dir/robot.json: line 5: period_ms has no effect beside freq_hz",
            "dir/robot.json: line 6: msg_pass_by of a subscriber cannot be loaned_msg; it is taken as shared_ptr",
        ]
    );
    assert_eq!(graph.nodes[0].publishers[0].period_ns, Some(100_000_000));
}

#[test]
fn what_is_wrong_is_one_sentence_with_file_line_and_key() {
    let publisher = |keys: &str| {
        format!(
            "{{\"nodes\": [\n{{\"node_name\": \"a\",\n\"publishers\": [{{\"topic_name\": \"t\", {keys}}}]}}]}}"
        )
    };
    let stamped = |keys: &str| publisher(&format!("\"msg_type\": \"stamped10b\", {keys}"));
    for (text, expected) in [
        ("{}".to_owned(), "line 1: a file without nodes; expected nodes: a list of nodes"),
        ("{\"nodes\": 3}".to_owned(), "line 1: nodes is 3; expected a list of nodes"),
        ("{\"nodes\": [\n{}]}".to_owned(), "line 2: a node without node_name; expected node_name: a text"),
        (
            stamped("\"qos_depth\": 1"),
            "line 3: a publisher without freq_hz and period_ms; expected one of the two",
        ),
        (stamped("\"freq_hz\": \"10\""), "line 3: freq_hz is \"10\"; expected a number, 0 or more"),
        (
            stamped("\"freq_hz\": 100000"),
            "line 3: freq_hz is 100000; expected a distance of releases of 20 us or more",
        ),
        (
            publisher("\"msg_type\": \"stamped3b\", \"freq_hz\": 1"),
            "line 3: msg_type is \"stamped3b\"; expected one of ",
        ),
        (
            stamped("\"freq_hz\": 1, \"qos_reliability\": \"maybe\""),
            "line 3: qos_reliability is \"maybe\"; expected \"system_default\" or \"reliable\" or \"best_effort\" or \"unknown\"",
        ),
        (
            stamped("\"freq_hz\": 1, \"qos_deadline\": \"5ms\""),
            "line 3: qos_deadline is \"5ms\"; expected \"default\"",
        ),
        ("{\"nodes\": [\n".to_owned(), "line 2: EOF while parsing a list; expected JSON"),
    ] {
        let error = read_one(&text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("dir/robot.json: {expected}")), "{error}");
        assert!(!error.contains('\n'));
    }
}

proptest! {
    #[test]
    fn a_damaged_file_is_read_or_refused_in_one_line(at in 0usize..EVERY_KEY.len(), byte in 32u8..127) {
        let mut bytes = EVERY_KEY.as_bytes().to_vec();
        bytes[at] = byte;
        if let Err(error) = read_one(&String::from_utf8(bytes).unwrap()) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    /// Deliveries are what the periods say, whatever they are.
    #[test]
    fn deliveries_are_the_rates_of_those_who_listen(period_us in 20u32..1_000_000, listeners in 0u32..20) {
        let text = format!(
            r#"{{"nodes": [{{"node_name": "a", "publishers": [{{"topic_name": "t", "msg_type": "stamped1kb", "period_ms": {}}}]}},
                {{"node_name": "b", "number": {listeners}, "subscribers": [{{"topic_name": "t", "msg_type": "stamped1kb"}}]}}]}}"#,
            f64::from(period_us) / 1000.0
        );
        let (graph, _) = read_one(&text).unwrap();
        let (edges, _) = edges(&graph);
        let counted = counts(&graph, &edges);
        prop_assert!((counted.deliveries_hz - counted.publishes_hz * f64::from(listeners)).abs() < 1e-6);
        prop_assert!((counted.delivered_bytes_hz - counted.deliveries_hz * 1024.0).abs() < 1e-3);
    }
}

//! Copies of a whole graph side by side, as in the ERTS 2022 paper's experiment with 1 to 30 AOCS
//! (§VI-A). They share only the machine and, if requested, the files.

use super::{Action, Chain, Executor, Graph, Node, Process, Topic};

/// This many copies of the graph; with more than one, names end with `-1`, `-2`, ….
#[must_use]
pub fn copies(graph: &Graph, count: u32) -> Graph {
    if count == 1 {
        return graph.clone();
    }
    let mut all = Graph {
        processes: Vec::new(),
        executors: Vec::new(),
        nodes: Vec::new(),
        topics: Vec::new(),
        chains: Vec::new(),
        ..graph.clone()
    };
    for number in 1..=count {
        let named = |name: &String| format!("{name}-{number}");
        let (processes, executors) = (all.processes.len(), all.executors.len());
        all.processes.extend(graph.processes.iter().map(|one| Process { name: named(&one.name) }));
        all.executors.extend(graph.executors.iter().map(|one| Executor {
            name: named(&one.name),
            process: processes + one.process,
            ..one.clone()
        }));
        all.nodes.extend(graph.nodes.iter().map(|one| renamed(one, executors, &named)));
        all.topics.extend(graph.topics.iter().map(|one| Topic { name: named(&one.name), ..one.clone() }));
        all.chains.extend(
            graph
                .chains
                .iter()
                .map(|one| Chain { name: named(&one.name), topics: one.topics.iter().map(named).collect() }),
        );
    }
    all
}

fn renamed(node: &Node, executors: usize, named: &impl Fn(&String) -> String) -> Node {
    let mut node = node.clone();
    node.name = named(&node.name);
    node.executor += executors;
    let rename = |action: &mut Action| {
        action.takes.iter_mut().chain(&mut action.publishes).for_each(|topic| *topic = named(topic));
    };
    node.timers.iter_mut().for_each(|timer| rename(&mut timer.action));
    node.subscribers.iter_mut().for_each(|one| rename(&mut one.action));
    let topics = node.publishers.iter_mut().map(|one| &mut one.topic);
    let topics = topics.chain(node.subscribers.iter_mut().map(|one| &mut one.topic));
    let topics = topics.chain(node.clients.iter_mut().map(|one| &mut one.service));
    topics.chain(node.servers.iter_mut().map(|one| &mut one.service)).for_each(|name| *name = named(name));
    node
}

#[cfg(test)]
mod tests {
    use super::super::edges::edges;
    use super::*;
    use std::path::Path;

    #[test]
    fn copies_do_not_hear_each_other() {
        let text = include_str!("../../fixtures/every-key.json").to_owned();
        let (graph, _) = super::super::irobot::read(&[(Path::new("robot.json"), text)]).unwrap();
        let (one, _) = edges(&graph);
        let three = copies(&graph, 3);
        let (all, _) = edges(&three);
        assert_eq!((all.len(), three.executors.len()), (one.len() * 3, graph.executors.len() * 3));
        let copy = |node: usize| three.nodes[node].name.rsplit('-').next().map(str::to_owned);
        assert!(all.iter().all(|edge| copy(edge.from.node) == copy(edge.to.node)));
        assert_eq!(copies(&graph, 1), graph);
    }
}

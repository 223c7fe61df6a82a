//! Checks a graph beyond its syntax: names that resolve, rates that can be served, actions that
//! make sense.

use super::{Action, By, Graph, Node};
use measure::job::{INPUT_BYTES, OUTPUT_BYTES, Work};
use model::Error;

/// The shortest release interval, ns.
const LEAST_PERIOD_NS: u64 = 20_000;
/// The most threads of one executor, and of a graph.
const MOST_THREADS: u32 = 64;
/// The largest payload, bytes.
const MOST_BYTES: u64 = crate::transport::MOST_BYTES as u64;

/// Checks a graph that came from `place`.
pub(super) fn check(place: &str, graph: &Graph) -> Result<(), Error> {
    names(place, graph)?;
    for executor in &graph.executors {
        if !(1..=MOST_THREADS).contains(&executor.threads) {
            let at = format!("{place}: executor {:?}", executor.name);
            return Err(Error::invalid(at, format!("threads = {}", executor.threads), "1 to 64"));
        }
    }
    for one in &graph.nodes {
        let at = format!("{place}: node {:?}", one.name);
        node(&at, one)?;
        if let Some(timer) = one.timers.iter().find(|timer| timer.by == By::Signal) {
            by_signal(&format!("{at}, timer {:?}", timer.name), graph, one.executor)?;
        }
    }
    for topic in &graph.topics {
        published(graph, &format!("{place}: topic {:?}", topic.name), &topic.name)?;
    }
    for chain in &graph.chains {
        let at = format!("{place}: chain {:?}", chain.name);
        self::chain(graph, &at, &chain.topics)?;
    }
    Ok(())
}

/// Checks that no two things share a name: our own graph files identify nodes by it. JSON files may
/// have two nodes of one name, in two processes.
pub(super) fn names(place: &str, graph: &Graph) -> Result<(), Error> {
    unique(place, "process", graph.processes.iter().map(|process| process.name.clone()))?;
    unique(place, "executor", graph.executors.iter().map(|executor| executor.name.clone()))?;
    unique(place, "node", graph.nodes.iter().map(Node::full_name))?;
    unique(place, "topic", graph.topics.iter().map(|topic| topic.name.clone()))
}

fn unique(place: &str, what: &str, names: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let found = format!("two of {what} {:?}", pair[0]);
            Err(Error::invalid(place, found, "names that are unique"))
        }
        None => Ok(()),
    }
}

fn node(at: &str, node: &Node) -> Result<(), Error> {
    let wrong = |what: String, expected: &str| Err(Error::invalid(at, what, expected));
    let timers = node.timers.iter().map(|timer| (timer.name.as_str(), timer.period_ns));
    let timed = node.publishers.iter().filter_map(|one| Some((one.topic.as_str(), one.period_ns?)));
    let asked = node.clients.iter().map(|one| (one.service.as_str(), one.period_ns));
    if let Some((name, ns)) = timers.chain(timed).chain(asked).find(|(_, ns)| *ns < LEAST_PERIOD_NS) {
        return wrong(format!("a period of {ns} ns of {name:?}"), "20us or more");
    }
    let sizes = node.publishers.iter().map(|one| one.bytes).chain(node.clients.iter().map(|one| one.bytes));
    if let Some(bytes) = sizes.chain(node.servers.iter().map(|one| one.bytes)).find(|one| *one > MOST_BYTES) {
        return wrong(format!("a payload of {bytes} bytes"), "at most 16 MiB");
    }
    for timer in &node.timers {
        action(&format!("{at}, timer {:?}", timer.name), node, &timer.action)?;
    }
    for subscriber in &node.subscribers {
        let at = format!("{at}, subscriber of {:?}", subscriber.topic);
        action(&at, node, &subscriber.action)?;
        if subscriber.action.reads || !subscriber.action.takes.is_empty() {
            return Err(Error::invalid(at, "reads or takes", "neither: only timers read and take"));
        }
    }
    let used = |topic: &str| {
        let actions = node.timers.iter().map(|one| &one.action);
        let mut actions = actions.chain(node.subscribers.iter().map(|one| &one.action));
        actions.any(|action| action.publishes.iter().any(|one| one == topic))
    };
    match node.publishers.iter().find(|one| one.period_ns.is_none() && !used(&one.topic)) {
        Some(one) => wrong(
            format!("topic {:?}, which nothing publishes", one.topic),
            "a period, or an action that publishes it",
        ),
        None => Ok(()),
    }
}

/// A thread that waits for a signal hears nothing else.
fn by_signal(at: &str, graph: &Graph, executor: usize) -> Result<(), Error> {
    let work = |node: &Node| {
        let timed = node.publishers.iter().filter(|one| one.period_ns.is_some()).count();
        let received = node.subscribers.len() + node.clients.len() + node.servers.len();
        node.timers.len() + timed + received
    };
    let nodes = graph.nodes.iter().filter(|node| node.executor == executor);
    if graph.executors[executor].threads == 1 && nodes.map(work).sum::<usize>() == 1 {
        return Ok(());
    }
    Err(Error::invalid(
        at,
        "by = \"signal\" in an executor that has more to do",
        "an executor of one thread with no other timer and nothing to receive",
    ))
}

fn action(at: &str, node: &Node, action: &Action) -> Result<(), Error> {
    let wrong = |what: String, expected: &str| Err(Error::invalid(at, what, expected));
    for topic in &action.publishes {
        let Some(publisher) = node.publishers.iter().find(|one| one.topic == *topic) else {
            return wrong(format!("publishes {topic:?}"), "a topic of a publisher of the same node");
        };
        // Inputs are copied into the published message; outputs are the results of an
        // attitude-control step.
        let needed = if action.reads { INPUT_BYTES } else { OUTPUT_BYTES } as u64;
        if (action.reads || action.computes == Some(Work::Attitude)) && publisher.bytes < needed {
            return wrong(
                format!("{topic:?} has {} bytes", publisher.bytes),
                &format!("at least {needed}: a record"),
            );
        }
    }
    if let Some(topic) =
        action.takes.iter().find(|topic| !node.subscribers.iter().any(|one| one.topic == **topic))
    {
        return wrong(format!("takes {topic:?}"), "a topic of a subscriber of the same node");
    }
    Ok(())
}

fn published(graph: &Graph, at: &str, topic: &str) -> Result<(), Error> {
    if graph.publishers().any(|(node, publisher)| node.resolve(&publisher.topic) == topic) {
        return Ok(());
    }
    Err(Error::invalid(at, format!("{topic:?}, which nobody publishes"), "a published topic"))
}

/// Each topic must be published by an action that serves the topic before it.
fn chain(graph: &Graph, at: &str, topics: &[String]) -> Result<(), Error> {
    let Some(first) = topics.first() else {
        return Err(Error::invalid(at, "no topics", "one topic or more"));
    };
    published(graph, at, first)?;
    for pair in topics.windows(2) {
        let hands_on = graph.nodes.iter().any(|node| {
            let same = |own: &String| node.resolve(own) == pair[1];
            let taken = node
                .timers
                .iter()
                .filter(|timer| timer.action.takes.iter().any(|topic| node.resolve(topic) == pair[0]));
            let served = node.subscribers.iter().filter(|one| node.resolve(&one.topic) == pair[0]);
            taken
                .map(|timer| &timer.action)
                .chain(served.map(|one| &one.action))
                .any(|action| action.publishes.iter().any(same))
        });
        if !hands_on {
            let what = format!("{:?} after {:?}", pair[1], pair[0]);
            return Err(Error::invalid(
                at,
                what,
                "a topic that is published by what receives the one before",
            ));
        }
    }
    Ok(())
}

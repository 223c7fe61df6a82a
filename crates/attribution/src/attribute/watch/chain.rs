//! Chains of wake-ups: a woken thread wakes the next before it sleeps again. Kept as a tree of
//! wakers and woken threads, so that each chain is stored once however often it occurs.

use crate::attribute::figures::Sums;
use rustc_hash::FxHashMap;

/// The most nodes of the tree.
const MOST: usize = 4096;
/// The longest chain; a longer one begins anew.
const LONGEST: u32 = 8;

/// A place on a chain: the node of an activation, and when the chain began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    node: u32,
    start_ns: i64,
}

/// One step of a chain.
#[derive(Debug)]
pub(crate) struct Node {
    parent: Option<u32>,
    tid: i32,
    depth: u32,
    pub(crate) n: u64,
    pub(crate) latency: Sums,
}

/// All chains.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    nodes: Vec<Node>,
    ids: FxHashMap<(Option<u32>, i32), u32>,
    pub(crate) dropped: u64,
}

impl Chains {
    /// A thread runs because the thread at `before`, or something else, woke it. `released_ns`:
    /// when it was released; `ts_ns`: when it runs, if seen. A thread that is on the chain already
    /// begins a new one: its wakers answer it.
    pub(crate) fn run(
        &mut self,
        before: Option<Place>,
        tid: i32,
        released_ns: i64,
        ts_ns: Option<i64>,
    ) -> Option<Place> {
        let parent = before.filter(|place| self.goes_on(place.node, tid));
        let start_ns = parent.map_or(released_ns, |place| place.start_ns);
        let node = self.node(parent.map(|place| place.node), tid)?;
        let counted = self.nodes.get_mut(node as usize)?;
        counted.n += 1;
        if let Some(ts_ns) = ts_ns {
            counted.latency.add(ts_ns.saturating_sub(start_ns));
        }
        Some(Place { node, start_ns })
    }

    fn goes_on(&self, node: u32, tid: i32) -> bool {
        let short = self.nodes.get(node as usize).is_some_and(|node| node.depth < LONGEST);
        short && self.way(node).all(|before| before != tid)
    }

    /// The threads of a chain, last first.
    fn way(&self, node: u32) -> impl Iterator<Item = i32> {
        let step = |node: &&Node| node.parent.and_then(|parent| self.nodes.get(parent as usize));
        std::iter::successors(self.nodes.get(node as usize), step).map(|node| node.tid)
    }

    fn node(&mut self, parent: Option<u32>, tid: i32) -> Option<u32> {
        if let Some(node) = self.ids.get(&(parent, tid)) {
            return Some(*node);
        }
        if self.nodes.len() >= MOST {
            self.dropped += 1;
            return None;
        }
        let depth =
            parent.and_then(|parent| self.nodes.get(parent as usize)).map_or(1, |node| node.depth + 1);
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { parent, tid, depth, n: 0, latency: Sums::default() });
        self.ids.insert((parent, tid), node);
        Some(node)
    }

    /// The chains of two or more threads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Vec<i32>, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_some()).map(|(at, node)| {
            let mut way: Vec<_> = self.way(at as u32).collect();
            way.reverse();
            (way, node)
        })
    }
}

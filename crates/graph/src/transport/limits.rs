//! Machine-wide settings that can keep a link below what was requested.
//!
//! `fs.mqueue.msgsize_max`, `fs.mqueue.msg_max` (mq_overview(7)), `fs.pipe-max-size` (pipe(7)),
//! `net.core.wmem_max` and `rmem_max` (socket(7)). This module changes none of them: a caller that
//! does must store them first, to restore them.

use super::making::{pipe_page_bytes, socket_bytes};
use super::{HEADER_BYTES, Kind, LinkSpec};
use std::collections::BTreeMap;

/// A setting that is smaller than a link needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its file.
    pub path: String,
    /// What it says.
    pub have: u64,
    /// What the link needs.
    pub want: u64,
}

/// The settings that are too small for these links, each with the largest value that one of them
/// needs.
pub fn too_small(specs: &[LinkSpec]) -> Vec<Setting> {
    let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, want) in specs.iter().flat_map(needs) {
        let most = wanted.entry(path).or_default();
        *most = want.max(*most);
    }
    let setting = |(path, want): (&str, usize)| {
        let have = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
        let want = want as u64;
        (have < want).then(|| Setting { path: path.to_owned(), have, want })
    };
    wanted.into_iter().filter_map(setting).collect()
}

/// What a link needs, whoever makes it.
fn needs(spec: &LinkSpec) -> Vec<(&'static str, usize)> {
    const MSG_MAX: &str = "/proc/sys/fs/mqueue/msg_max";
    let frame = spec.message_bytes + HEADER_BYTES;
    let socket = spec.depth * socket_bytes(frame) / 2;
    match spec.kind {
        Kind::Mq => vec![("/proc/sys/fs/mqueue/msgsize_max", frame), (MSG_MAX, spec.depth)],
        Kind::MqPointer => vec![(MSG_MAX, spec.depth)],
        Kind::Pipe => {
            vec![("/proc/sys/fs/pipe-max-size", (spec.depth * pipe_page_bytes(spec)).next_power_of_two())]
        }
        Kind::Seqpacket => vec![("/proc/sys/net/core/wmem_max", socket)],
        Kind::Udp => {
            vec![
                ("/proc/sys/net/core/rmem_max", socket),
                ("/proc/sys/net/core/wmem_max", socket_bytes(frame) / 2),
            ]
        }
        Kind::Queue | Kind::ShmFutex | Kind::ShmEventfd | Kind::ShmPoll => Vec::new(),
        #[cfg(feature = "iceoryx2")]
        Kind::Iceoryx2 => Vec::new(),
        #[cfg(feature = "ros2")]
        Kind::Ros2 => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::WhenFull;

    fn spec(kind: Kind, message_bytes: usize, depth: usize) -> LinkSpec {
        LinkSpec { name: String::new(), kind, message_bytes, depth, when_full: WhenFull::Refuse }
    }

    #[test]
    fn memory_needs_nothing_and_the_largest_need_counts() {
        assert!(needs(&spec(Kind::ShmFutex, 1 << 20, 100)).is_empty());
        let specs = [spec(Kind::Mq, 100, 10), spec(Kind::Mq, 15 << 20, 4000), spec(Kind::Mq, 1000, 3)];
        let found = too_small(&specs);
        let want = |name: &str| found.iter().find(|setting| setting.path.ends_with(name)).map(|one| one.want);
        if !std::path::Path::new("/proc/sys/fs/mqueue/msg_max").exists() {
            assert!(found.is_empty(), "a kernel without message queues has no such settings: {found:?}");
            println!("skipped: this kernel has no POSIX message queues");
            return;
        }
        assert_eq!(want("msgsize_max"), Some((15 << 20) + HEADER_BYTES as u64));
        assert!(want("msg_max").is_none_or(|want| want == 4000));
    }
}

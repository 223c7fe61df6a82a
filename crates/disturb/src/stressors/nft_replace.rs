//! `nft_replace`: a firewall rule replaced, in a network namespace of the stressor's own, as
//! container runtimes and `nft -f` do.
//!
//! A transaction of nf_tables deletes the rules of a chain and adds one
//! (`include/uapi/linux/netfilter/nf_tables.h`). The kernel builds the chain anew and switches to
//! it (net/netfilter/nf_tables_api.c: `nf_tables_commit`); what was replaced is freed by a work
//! item that waits for an RCU grace period first (`nf_tables_trans_destroy_work`,
//! `synchronize_rcu`).

use crate::account::Account;
use crate::job::Job;
use crate::netlink::{Message, Netlink, attributes, terminated};
use crate::spec::StressorSpec;
use crate::witness::Counter;
use crate::{Error, namespaces};
use rustix::io::Errno;
use rustix::net::netlink::NETFILTER;
use std::io;

/// `NFNL_SUBSYS_NFTABLES`, and the messages that begin and end a transaction.
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEWTABLE: u16 = 0;
const NEWCHAIN: u16 = 3;
const NEWRULE: u16 = 6;
const DELRULE: u16 = 8;
const GETGEN: u16 = 16;
const NFPROTO_IPV4: u8 = 2;
const NF_INET_LOCAL_IN: u32 = 1;
const NF_ACCEPT: u32 = 1;
/// `struct nlmsghdr` and `struct nfgenmsg`.
const HEADERS: usize = 20;
const GEN_ID: u16 = 1;
const NAME: &str = "stillcore";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "nft_replace",
    title: "a firewall rule replaced, in a network namespace of its own",
    class: "net",
    operation: "a transaction that deletes the rule of a chain and adds another",
    privilege: "CAP_SYS_ADMIN, for a network namespace of its own",
    needs: "CONFIG_NF_TABLES, CONFIG_NF_TABLES_IPV4, CONFIG_NET_NS",
    kernel_paths: &[
        "nfnetlink_rcv_batch",
        "nf_tables_commit",
        "call_rcu",
        "nf_tables_trans_destroy_work",
        "synchronize_rcu",
    ],
    witness: "generations of the rules in its own network namespace, which the kernel numbers: exact",
    cleanup: "the rules go with the network namespace",
    danger: "the mutex of its own rules; freed rules pile up where the kernel's worker is slower, bounded by the rate",
    default_rate: Some(50.0),
    // libcrc32c, which nf_tables needs, asks for an algorithm: no dependency names that module.
    modules: &["crc32c_generic", "nf_tables"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    let rules = Rules::open()?;
    let before = job.begin_counting(Counter::read("generations of nf_tables rules", || {
        rules.generation().map_err(Error::refused("ask for the generation of the rules"))
    })?)?;
    let done = job.repeat(|| rules.replace());
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// A chain of this network namespace that packets to itself go through.
struct Rules(Netlink);

impl Rules {
    /// Makes table and chain; absent where this kernel has no such rules.
    fn open() -> Result<Self, Error> {
        let absent = |error: io::Error| match error.raw_os_error() {
            Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT) => Error::absent(
                format!("this kernel has no nf_tables for IPv4 (CONFIG_NF_TABLES_IPV4): {error}"),
            ),
            _ => Error::refused("make a chain of nf_tables")(error),
        };
        let rules = Self(Netlink::open(Some(NETFILTER)).map_err(absent)?);
        rules.0.ask(&transaction([new_table(), new_chain()])).map_err(absent)?;
        Ok(rules)
    }

    fn replace(&self) -> io::Result<()> {
        self.0.ask(&transaction([delete_rules(), new_rule()]))
    }

    /// How many transactions this namespace has seen.
    fn generation(&self) -> io::Result<u64> {
        let answer = self.0.answer(&message(GETGEN, 0).finish())?;
        let found = attributes(answer.get(HEADERS..).unwrap_or_default());
        let generation = found.iter().find(|(kind, _)| *kind == GEN_ID).map(|(_, value)| *value);
        let bytes = generation.and_then(|value| value.try_into().ok()).ok_or(Errno::BADMSG)?;
        Ok(u64::from(u32::from_be_bytes(bytes)))
    }
}

/// Messages that take effect together; the last one is acknowledged once they have.
fn transaction(parts: [Message; 2]) -> Vec<u8> {
    // `struct nfgenmsg`: no family, version 0, and whose messages come.
    let [high, low] = NFTABLES.to_be_bytes();
    let bound = |kind| Message::new(kind, 0, &[0, 0, high, low]).finish();
    let parts = parts.map(Message::finish).concat();
    [bound(BATCH_BEGIN), parts, bound(BATCH_END)].concat()
}

fn message(kind: u16, flags: i32) -> Message {
    Message::new(NFTABLES << 8 | kind, flags, &[NFPROTO_IPV4, 0, 0, 0])
}

fn new_table() -> Message {
    let mut table = message(NEWTABLE, libc::NLM_F_CREATE);
    table.attribute(1, &terminated(NAME));
    table
}

/// A chain of packets that come in (`NFTA_CHAIN_TABLE`, `_NAME`, `_HOOK`, `_TYPE`).
fn new_chain() -> Message {
    let mut chain = message(NEWCHAIN, libc::NLM_F_CREATE | libc::NLM_F_ACK);
    chain.attribute(1, &terminated(NAME));
    chain.attribute(3, &terminated(NAME));
    chain.nested(4, |hook| {
        hook.attribute(1, &NF_INET_LOCAL_IN.to_be_bytes());
        hook.attribute(2, &0u32.to_be_bytes());
    });
    chain.attribute(7, &terminated("filter"));
    chain
}

/// All rules of the chain: no handle names one.
fn delete_rules() -> Message {
    let mut rules = message(DELRULE, 0);
    rules.attribute(1, &terminated(NAME));
    rules.attribute(2, &terminated(NAME));
    rules
}

/// A rule that accepts: the expression `immediate` puts a verdict (`NFTA_IMMEDIATE_DATA`,
/// `NFTA_DATA_VERDICT`, `NFTA_VERDICT_CODE`) into the register of verdicts, 0.
fn new_rule() -> Message {
    let mut rule = message(NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND | libc::NLM_F_ACK);
    rule.attribute(1, &terminated(NAME));
    rule.attribute(2, &terminated(NAME));
    rule.nested(4, |expressions| {
        expressions.nested(1, |expression| {
            expression.attribute(1, &terminated("immediate"));
            expression.nested(2, |immediate| {
                immediate.attribute(1, &0u32.to_be_bytes());
                immediate.nested(2, |data| {
                    data.nested(2, |verdict| verdict.attribute(1, &NF_ACCEPT.to_be_bytes()));
                });
            });
        });
    });
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_four_messages_of_which_the_last_but_one_is_acknowledged() {
        let bytes = transaction([delete_rules(), new_rule()]);
        let mut rest = &bytes[..];
        let mut heads = Vec::new();
        while let Some((length, _)) = rest.split_first_chunk::<4>() {
            let half = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
            heads.push((half(4), i32::from(half(6)) & libc::NLM_F_ACK != 0));
            rest = &rest[u32::from_ne_bytes(*length) as usize..];
        }
        assert_eq!(heads, [(16, false), (0xa08, false), (0xa06, true), (17, false)]);
        let rule = new_rule().finish();
        let outer = attributes(&rule[HEADERS..]);
        assert_eq!(outer[1], (2, &b"stillcore\0"[..]));
        let expression = attributes(attributes(outer[2].1)[0].1);
        assert_eq!(expression[0], (1, &b"immediate\0"[..]));
    }
}

//! `nic_veth`: what starting and stopping a container does to the network. A pair of veth links is
//! made, set up and removed.
//!
//! Two devices are registered and unregistered at a time, both with a carrier (drivers/net/veth.c),
//! so that link state work, address configuration and their timers run too, which a dummy link that
//! carries nothing does not have.

use crate::account::Account;
use crate::job::Job;
use crate::links::{self, Kind};
use crate::spec::StressorSpec;
use crate::{Error, namespaces};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "nic_veth",
    title: "container networking: a pair of veth links made, set up and removed",
    class: "net",
    operation: "a pair made, set up and removed",
    privilege: "CAP_SYS_ADMIN, for a network namespace of its own",
    needs: "CONFIG_VETH, CONFIG_NET_NS",
    kernel_paths: &[
        "veth_newlink",
        "register_netdevice",
        "linkwatch_event",
        "unregister_netdevice_many",
        "synchronize_net",
    ],
    witness: "numbers of the links in its own network namespace, two a pair: exact",
    cleanup: "the pair goes with the network namespace",
    danger: "RTNL is held; bounded by one pair at a time",
    default_rate: Some(20.0),
    modules: &["veth"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    links::repeat(job, Kind { name: "veth", paired: true, raised: true })
}

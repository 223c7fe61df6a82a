//! `k_workqueue`: kernel workqueues allocated and destroyed, by making and removing links that own
//! some.
//!
//! Table IV of the RTSS 2024 paper allocates workqueues again and again, from a module of its own.
//! What every kernel offers instead: a WireGuard link allocates three
//! (drivers/net/wireguard/device.c: key exchange unbound and per CPU, encryption per CPU with a
//! rescuer), a bond link one ordered queue with a rescuer (drivers/net/bonding/bond_main.c). Each
//! allocation links a pool of workers for each CPU, starts the rescuer's thread and, at the end,
//! waits for all of it.

use crate::account::Account;
use crate::job::Job;
use crate::links::{self, Kind, Links};
use crate::spec::StressorSpec;
use crate::{Error, namespaces};

const WIREGUARD: Kind = Kind { name: "wireguard", paired: false, raised: false };
const BOND: Kind = Kind { name: "bond", paired: false, raised: false };

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "k_workqueue",
    title: "kernel workqueues allocated and destroyed: WireGuard links, else bonds",
    class: "wq",
    operation: "a link with its workqueues made and removed: three a WireGuard link, one a bond",
    privilege: "CAP_SYS_ADMIN, for a network namespace of its own",
    needs: "CONFIG_WIREGUARD or CONFIG_BONDING; CONFIG_NET_NS",
    kernel_paths: &[
        "alloc_workqueue",
        "init_rescuer",
        "destroy_workqueue",
        "register_netdevice",
        "synchronize_net",
    ],
    witness: "numbers of the links in its own network namespace: exact",
    cleanup: "the link and its workqueues go with the network namespace",
    danger: "RTNL is held; bounded by one link at a time",
    default_rate: Some(20.0),
    modules: &["wireguard", "bonding"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    let links = Links::open().map_err(Error::refused("open an rtnetlink socket"))?;
    let known = |kind: &Kind| links.next_number(*kind).is_ok();
    let kind = [WIREGUARD, BOND].into_iter().find(known);
    links::repeat(
        job,
        kind.ok_or_else(|| Error::absent("this kernel makes neither WireGuard nor bond links"))?,
    )
}

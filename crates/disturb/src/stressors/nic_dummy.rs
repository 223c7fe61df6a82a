//! `nic_dummy`: an unused network card installed and uninstalled. A dummy link is made, set up and
//! removed.
//!
//! Table IV of the RTSS 2024 paper calls this load `nic`. Registering a device waits for RCU grace
//! periods and runs the notifier chains of the network stack (net/core/dev.c, `register_netdevice`,
//! `unregister_netdevice_many`); on kernels whose isolated CPUs keep their tick those grace periods
//! are expedited by interrupts.

use crate::account::Account;
use crate::job::Job;
use crate::links::{self, Kind};
use crate::spec::StressorSpec;
use crate::{Error, namespaces};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "nic_dummy",
    title: "an unused network card installed and uninstalled: a dummy link, set up",
    class: "net",
    operation: "a link made, set up and removed",
    privilege: "CAP_SYS_ADMIN, for a network namespace of its own",
    needs: "CONFIG_DUMMY, CONFIG_NET_NS",
    kernel_paths: &[
        "register_netdevice",
        "unregister_netdevice_many",
        "synchronize_net",
        "netdevice notifiers",
    ],
    witness: "numbers of the links in its own network namespace: exact",
    cleanup: "the link goes with the network namespace",
    danger: "RTNL is held; bounded by one link at a time",
    default_rate: Some(20.0),
    modules: &["dummy"],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    links::repeat(job, Kind { name: "dummy", paired: false, raised: true })
}

//! Two network cards joined to each other, each taken into a network namespace of its own: what is
//! sent from one to the other crosses both devices and interrupts this machine, as traffic with a
//! peer on a cable does.
//!
//! Between two addresses of one namespace the kernel never asks a card: both are in its table of
//! local addresses, and loopback carries all (`ip_route_output_key`, net/ipv4/route.c). So client
//! and server have a namespace each. A socket belongs to the namespace that it was made in, whoever
//! uses it, and a namespace belongs to a thread: one process is client and server.
//!
//! Only cards that a lab's guest was given for this are ever taken, known by their addresses
//! ([`model::lab_cards`]). A hardware card returns to the machine's own namespace when the one it
//! is in dies (`default_device_exit_net`, net/core/dev.c), so SIGKILL leaves nothing. At an
//! ordinary end they are returned at once.

use super::links::Links;
use super::namespaces::unshare;
use super::settle::arm_alarm;
use super::witness::rows_of;
use super::{Error, ifreq};
use model::Cpus;
use model::lab_cards::ADDRESSES;
use model::stressor::Witness;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::{fs, io};
use sys::clock::{SECOND_NS, now_ns, sleep_until};

/// The addresses of both ends: a network that is documented never to be anybody's (RFC 5737,
/// TEST-NET-1).
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// How long a link may take to come up: the driver of an e1000 looks every 2 s.
const PATIENCE_NS: i64 = 20 * SECOND_NS;
const NAP_NS: i64 = 20_000_000;
/// A driver that polls takes many frames with one interrupt (NAPI); one for so many operations is
/// the least to be seen.
const OPERATIONS_PER_INTERRUPT: u64 = 10;

/// A card by its name, and its device, whose interrupts are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Card {
    name: String,
    device: PathBuf,
}

/// Both cards in their namespaces; the calling thread is in the client's.
pub(super) struct NicPair {
    client: End,
    server: End,
    /// The namespace that they were taken from.
    home: OwnedFd,
}

struct End {
    card: Card,
    namespace: OwnedFd,
}

impl NicPair {
    /// Takes both cards; none where the machine was not given any, somebody else has them, or they
    /// are not for this user to take. The process must have one thread, and be where the cards are.
    pub(super) fn take() -> Result<Option<Self>, Error> {
        let Some([client, server]) = find(Path::new("/sys")) else { return Ok(None) };
        // Emulated links take their time, before the duration begins.
        arm_alarm(2 * PATIENCE_NS);
        let (links, home) = (Links::open().map_err(refused)?, own_namespace().map_err(refused)?);
        let server = match End::make(server, SERVER, &links) {
            // Of two that found both cards one was faster: the other begins with this one, too.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EPERM)) => {
                return Ok(None);
            }
            made => made.map_err(refused)?,
        };
        let client = End::make(client, CLIENT, &links).map_err(refused)?;
        let pair = Self { client, server, home };
        pair.await_link()?;
        Ok(Some(pair))
    }

    /// Listens at the server's end.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        self.server.enter()?;
        let listener = TcpListener::bind((SERVER, 0));
        self.client.enter()?;
        listener
    }

    /// Both names, for people.
    pub(super) fn names(&self) -> String {
        format!("{} and {}", self.client.card.name, self.server.card.name)
    }

    /// Counts the interrupts of both cards from here on.
    pub(super) fn interrupts(&self, measured: &Cpus) -> Result<Interrupts, Error> {
        let cards = [&self.client.card, &self.server.card];
        let lines: BTreeSet<u32> = cards.iter().flat_map(|card| interrupt_lines(&card.device)).collect();
        if lines.is_empty() {
            return Err(Error::absent(format!("sysfs does not show the interrupts of {}", self.names())));
        }
        let (all, on_measured) = (rows_of(&lines, None)?, rows_of(&lines, Some(measured))?);
        Ok(Interrupts { names: self.names(), lines, measured: measured.clone(), all, on_measured })
    }

    /// Waits until both ends have a carrier.
    fn await_link(&self) -> Result<(), Error> {
        let until_ns = now_ns() + PATIENCE_NS;
        for end in [&self.server, &self.client] {
            end.enter().map_err(refused)?;
            while !ifreq::is_running(&end.card.name).map_err(refused)? {
                if now_ns() > until_ns {
                    return Err(refused(io::ErrorKind::TimedOut));
                }
                sleep_until(now_ns() + NAP_NS);
            }
        }
        Ok(())
    }
}

impl Drop for NicPair {
    /// Without this they would go home too, by a kernel worker, a moment later.
    fn drop(&mut self) {
        for end in [&self.server, &self.client] {
            let links = end.enter().and_then(|()| Links::open());
            let _ = links.and_then(|links| links.move_to(&end.card.name, self.home.as_fd()));
        }
    }
}

impl End {
    /// Takes a card, from where `links` asks, into a namespace that is made for it and entered.
    fn make(card: Card, address: Ipv4Addr, links: &Links) -> io::Result<Self> {
        unshare(UnshareFlags::NEWNET)?;
        let namespace = own_namespace()?;
        links.move_to(&card.name, namespace.as_fd())?;
        ifreq::raise("lo", None)?;
        ifreq::raise(&card.name, Some(address))?;
        Ok(Self { card, namespace })
    }

    fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// What the cards' interrupts were before the first operation.
pub(super) struct Interrupts {
    names: String,
    lines: BTreeSet<u32>,
    measured: Cpus,
    all: u64,
    on_measured: u64,
}

impl Interrupts {
    /// The witness of so many operations. Interrupts on measured CPUs are no fault of the
    /// stressor's, and are counted separately.
    pub(super) fn grown(&self, operations: u64) -> Result<Witness, Error> {
        let on_measured = rows_of(&self.lines, Some(&self.measured))?.saturating_sub(self.on_measured);
        let name = format!(
            "/proc/interrupts of {} (IRQ {}), {on_measured} of them on measured CPUs",
            self.names,
            self.lines.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        );
        let seen = rows_of(&self.lines, None)?.saturating_sub(self.all);
        Ok(Witness { name, expected: operations / OPERATIONS_PER_INTERRUPT, seen })
    }
}

fn refused(error: impl Into<io::Error>) -> Error {
    Error::refused("take two network cards into namespaces of their own")(error)
}

fn own_namespace() -> io::Result<OwnedFd> {
    Ok(open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The lab's two cards in the calling process's network namespace, in the order of their addresses,
/// if both are there and down.
fn find(sys: &Path) -> Option<[Card; 2]> {
    let card = |address: &str| {
        let entries = fs::read_dir(sys.join("class/net")).ok()?;
        entries.flatten().find_map(|entry| {
            let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
            let flags = u32::from_str_radix(read("flags").trim().trim_start_matches("0x"), 16).ok()?;
            let unused = flags & libc::IFF_UP as u32 == 0;
            let device = entry.path().join("device").canonicalize().ok()?;
            let name = entry.file_name().into_string().ok()?;
            (read("address").trim() == address && unused).then_some(Card { name, device })
        })
    };
    Some([card(ADDRESSES[0])?, card(ADDRESSES[1])?])
}

/// The interrupts of the device that is this one or the nearest above that has any: a virtio device
/// has those of its PCI function (`Documentation/ABI/testing/sysfs-bus-pci`: `msi_irqs`, `irq`).
fn interrupt_lines(device: &Path) -> Vec<u32> {
    let of = |dir: &Path| -> Vec<u32> {
        let number = |text: &str| text.trim().parse().ok().filter(|line| *line > 0);
        let messages = fs::read_dir(dir.join("msi_irqs")).into_iter().flatten().flatten();
        let messages: Vec<u32> = messages.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
        if !messages.is_empty() {
            return messages;
        }
        fs::read_to_string(dir.join("irq")).ok().and_then(|text| number(&text)).into_iter().collect()
    };
    device.ancestors().map(of).find(|lines| !lines.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card in a captured tree, below a PCI function with these files.
    fn card(sys: &Path, name: &str, address: &str, flags: &str, below: &str) -> PathBuf {
        let device = sys.join("devices/pci0000:00").join(below);
        let net = sys.join("class/net").join(name);
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(&net).unwrap();
        fs::write(net.join("address"), format!("{address}\n")).unwrap();
        fs::write(net.join("flags"), format!("{flags}\n")).unwrap();
        std::os::unix::fs::symlink(&device, net.join("device")).unwrap();
        device
    }

    #[test]
    fn both_of_the_labs_cards_are_taken_and_none_that_is_in_use_or_anybody_elses() {
        let sys = tempfile::tempdir().unwrap();
        card(sys.path(), "eth0", "52:54:00:12:34:56", "0x1002", "0000:00:02.0");
        let device = card(sys.path(), "eth2", ADDRESSES[0], "0x1002", "0000:00:03.0");
        assert_eq!(find(sys.path()), None, "one is no pair");
        card(sys.path(), "eth1", ADDRESSES[1], "0x1002", "0000:00:04.0");
        let found = find(sys.path()).unwrap();
        assert_eq!([&found[0].name, &found[1].name], ["eth2", "eth1"]);
        assert_eq!(found[0].device, device.canonicalize().unwrap());
        fs::write(sys.path().join("class/net/eth1/flags"), "0x1003\n").unwrap();
        assert_eq!(find(sys.path()), None, "one that is up is somebody's");
    }

    #[test]
    fn interrupts_are_the_devices_own_or_those_of_the_function_above_it() {
        let sys = tempfile::tempdir().unwrap();
        let virtio = card(sys.path(), "eth0", ADDRESSES[0], "0x1002", "0000:00:03.0/virtio1");
        assert_eq!(interrupt_lines(&virtio), [0_u32; 0]);
        let function = virtio.parent().unwrap();
        fs::write(function.join("irq"), "22\n").unwrap();
        assert_eq!(interrupt_lines(&virtio), [22]);
        for line in ["26", "27"] {
            fs::create_dir_all(function.join("msi_irqs")).unwrap();
            fs::write(function.join("msi_irqs").join(line), "msix\n").unwrap();
        }
        assert_eq!(interrupt_lines(&virtio).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([26, 27]));
    }
}

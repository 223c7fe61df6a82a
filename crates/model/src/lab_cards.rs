//! How the two network cards of a lab's guest are known: by hardware addresses that nobody else
//! has.
//!
//! The lab gives them to the guest (`lab run --nic`), and a disturbance there takes both from the
//! machine while it runs. Taking the wrong card would cut off the machine's user, so no other card
//! is accepted. The addresses are locally administered (IEEE 802, second bit of the first byte);
//! the rest spells "stil".

/// Both addresses, as the kernel writes them; the client's first.
pub const ADDRESSES: [&str; 2] = ["02:73:74:69:6c:01", "02:73:74:69:6c:02"];

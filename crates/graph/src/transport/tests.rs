//! Links of every kind, within one process.

use super::*;

fn spec(kind: Kind, message_bytes: usize, depth: usize, when_full: WhenFull) -> LinkSpec {
    LinkSpec { name: "test".to_owned(), kind, message_bytes, depth, when_full }
}

fn link(kind: Kind, message_bytes: usize, depth: usize, when_full: WhenFull) -> (Link, Sender, Receiver) {
    let bell = Doorbell::new(&[kind]).unwrap();
    let link = Link::new(&spec(kind, message_bytes, depth, when_full), &bell).unwrap();
    let (sender, receiver) = link.pair().unwrap();
    (link, sender, receiver)
}

#[test]
fn a_message_arrives_with_its_header() {
    for kind in Kind::ALL {
        let (link, mut sender, mut receiver) = link(kind, 100, 4, WhenFull::Refuse);
        assert!(matches!(receiver.take().unwrap(), Take::Empty), "{kind}");
        assert_eq!(sender.send(77, b"hello").unwrap(), Sent::Taken);
        let Take::Message(message) = receiver.take().unwrap() else { panic!("{kind}: nothing came") };
        assert_eq!((message.header.release_ns, message.header.sequence, message.missed), (77, 0, 0));
        assert_eq!(message.payload, b"hello");
        drop(sender);
        assert!(matches!(receiver.take().unwrap(), Take::Closed), "{kind}");
        assert_eq!(link.settle().unwrap(), Balance { sent: 1, received: 1, ..Balance::default() });
    }
}

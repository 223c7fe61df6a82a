//! Transports: how one message gets from a publisher to one subscriber.

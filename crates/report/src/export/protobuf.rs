//! The wire format of protocol buffers, as much of it as writing needs: varints and
//! length-delimited fields.
//!
//! <https://protobuf.dev/programming-guides/encoding/>: a field is its key (`number << 3 | wire type`) and its value.

/// A message being written.
#[derive(Debug, Default, Clone)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A whole number (wire type 0).
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// A signed whole number as `int64` (wire type 0): negative ones take ten bytes.
    pub(super) fn signed(self, field: u32, value: i64) -> Self {
        self.number(field, value as u64)
    }

    /// A text (wire type 2).
    pub(super) fn text(self, field: u32, value: &str) -> Self {
        self.delimited(field, value.as_bytes())
    }

    /// A message in the message (wire type 2).
    pub(super) fn message(self, field: u32, value: &Self) -> Self {
        self.delimited(field, &value.bytes)
    }

    /// What has been written.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn delimited(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(Message::default().number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").bytes(), b"\x12\x07testing");
        let inner = Message::default().number(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = Message::default().signed(1, -2);
        assert_eq!(minus_two.bytes(), [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}

//! Byte order of the traced machine, which need not be that of the reading one.

/// Byte order of the numbers in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first (x86, most arm64).
    #[default]
    Little,
    /// Most significant byte first (s390x, some powerpc).
    Big,
}

impl Endian {
    /// The 16-bit number in `bytes`.
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The 32-bit number in `bytes`.
    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 64-bit number in `bytes`.
    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The `N` bytes of `data` from `at`, or `None` where `data` is too short.
    #[inline]
    pub(crate) fn take<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
        data.get(at..)?.first_chunk::<N>().copied()
    }

    /// The unsigned number of `size` bytes (1, 2, 4 or 8) at `at`; `None` for other sizes and past
    /// the end.
    #[inline]
    pub fn uint_at(self, data: &[u8], at: usize, size: usize) -> Option<u64> {
        match size {
            1 => data.get(at).map(|b| u64::from(*b)),
            2 => Self::take(data, at).map(|b| u64::from(self.u16(b))),
            4 => Self::take(data, at).map(|b| u64::from(self.u32(b))),
            8 => Self::take(data, at).map(|b| self.u64(b)),
            _ => None,
        }
    }

    /// `value` as bytes of this order.
    pub(crate) fn put_u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// `value` as bytes of this order.
    pub(crate) fn put_u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// `value` as bytes of this order.
    pub(crate) fn put_u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

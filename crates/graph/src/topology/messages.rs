//! The message types of irobot_interfaces_plugin and their payloads in bytes, as its `.msg` files
//! declare them: the thousands of `stamped250kb` and `stamped500kb` are decimal, those of most
//! others binary.

/// Payloads; `stamped_vector` has that of `msg_size`.
const SIZES: &[(&str, u64)] = &[
    ("stamped10b", 10),
    ("stamped100b", 100),
    ("stamped250b", 250),
    ("stamped1kb", 1_024),
    ("stamped10kb", 10_240),
    ("stamped50kb", 51_200),
    ("stamped100kb", 102_400),
    ("stamped250kb", 256_000),
    ("stamped500kb", 512_000),
    ("stamped600kb", 614_400),
    ("stamped1mb", 1_048_576),
    ("stamped4mb", 4_194_304),
    ("stamped5mb", 5_120_000),
    ("stamped8mb", 8_388_608),
    ("stamped_int64", 8),
    ("stamped3_float32", 12),
    ("stamped4_float32", 16),
    ("stamped4_int32", 16),
    ("stamped9_float32", 36),
    ("stamped12_float32", 48),
];

/// The type whose size a file gives.
pub(super) const VECTOR: &str = "stamped_vector";

/// Payload of a type, bytes; `msg_size` counts for vectors only. None for an unknown type.
pub fn bytes_of_type(name: &str, msg_size: u64) -> Option<u64> {
    if name == VECTOR {
        return Some(msg_size);
    }
    SIZES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// All names, for a sentence.
pub(super) fn known() -> String {
    SIZES.iter().map(|(name, _)| *name).chain([VECTOR]).collect::<Vec<_>>().join(", ")
}

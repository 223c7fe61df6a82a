//! Rows that have named fields here and are arrays in JSON: thousands of them, each with its names,
//! would make a file several times as long.

/// Serialises a struct as the array of its fields in this order. Its derived `Deserialize` reads
/// such an array.
#[macro_export]
macro_rules! serialize_as_array {
    ($name:ident { $($field:ident),+ }) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ($(&self.$field,)+).serialize(serializer)
            }
        }
    };
}

//! A question as it is written: the values of known keys, none of them judged yet.
//! [`crate::question`] says what they mean.
//!
//! One pass over the line, which keeps nothing but numbers: a line may have a million tasks.
//! Anything else in place of an integer is kept as text, for the sentence that refuses it.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

/// What stands where an integer or a word should.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Scalar {
    /// Nothing, or `null`.
    #[default]
    Absent,
    /// An integer that is not negative.
    Integer(u64),
    /// Anything else, lists and objects empty. Boxed, so that a million absent ones stay small.
    Other(Box<Value>),
}

/// The value in place of an object or a list: that, or the name of another kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape<T> {
    Is(T),
    Not(&'static str),
}

/// One kind of object: its keys, those of integers and words first, then perhaps that of a list,
/// then those of anything else.
pub(crate) trait Kind {
    /// All keys, at most 32.
    const KEYS: &'static [&'static str];
    /// What the list holds; [`IgnoredAny`] where there is none.
    type Item;
}

/// An object of one kind with `N` integers or words.
#[derive(Debug, Clone)]
pub(crate) struct Object<K: Kind, const N: usize> {
    /// In the order of [`Kind::KEYS`].
    pub(crate) values: [Scalar; N],
    pub(crate) list: Option<Shape<Vec<K::Item>>>,
    /// The values of the keys after that of the list, each with the place of its key.
    pub(crate) more: Vec<(usize, Tree)>,
    /// The first key that this kind does not have.
    pub(crate) unknown: Option<Box<str>>,
    /// The first key that stands twice.
    pub(crate) repeated: Option<&'static str>,
}

impl<K: Kind, const N: usize> Object<K, N> {
    fn take<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error>
    where
        K::Item: Deserialize<'de>,
    {
        let mut object = Self {
            values: [const { Scalar::Absent }; N],
            list: None,
            more: Vec::new(),
            unknown: None,
            repeated: None,
        };
        let mut seen = 0u32;
        while let Some(key) = map.next_key::<Key<K>>()? {
            let at = match key {
                Key::Known(at, _) => at,
                Key::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    object.unknown.get_or_insert(key);
                    continue;
                }
            };
            if seen & 1 << at != 0 {
                object.repeated = object.repeated.or(Some(K::KEYS[at]));
            }
            seen |= 1 << at;
            match object.values.get_mut(at) {
                Some(value) => *value = map.next_value()?,
                None if at == N => object.list = map.next_value::<Option<Shape<Vec<K::Item>>>>()?,
                None => object.more.extend(map.next_value::<Option<Tree>>()?.map(|value| (at, value))),
            }
        }
        Ok(object)
    }
}

/// The place of a key among [`Kind::KEYS`], or the key.
enum Key<K> {
    Known(usize, PhantomData<K>),
    Unknown(Box<str>),
}

impl<'de, K: Kind> Deserialize<'de> for Key<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word<K>(PhantomData<K>);

        impl<K: Kind> Visitor<'_> for Word<K> {
            type Value = Key<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                let known = K::KEYS.iter().position(|one| *one == key);
                Ok(known.map_or_else(|| Key::Unknown(key.into()), |at| Key::Known(at, PhantomData)))
            }
        }

        deserializer.deserialize_str(Word(PhantomData))
    }
}

/// A visitor takes a subset of JSON's values apart, and only names the rest.
trait Wanted<'de>: Sized {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::other(Value::Object(Map::new()), "an object"))
    }

    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other(Value::Array(Vec::new()), "a list"))
    }

    fn other(value: Value, name: &'static str) -> Self;
}

struct Taking<T>(PhantomData<T>);

impl<'de, T: Wanted<'de>> Visitor<'de> for Taking<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::other(Value::Null, "null"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::other(value.into(), "true or false"))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::other(value.into(), "a number"))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::other(value.into(), "a number"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::other(value.into(), "a number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<T, E> {
        Ok(T::other(value.into(), "a string"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        T::seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::map(map)
    }
}

impl Wanted<'_> for Scalar {
    fn other(value: Value, _: &'static str) -> Self {
        match value {
            Value::Null => Self::Absent,
            Value::Number(number) if number.is_u64() => Self::Integer(number.as_u64().unwrap_or_default()),
            value => Self::Other(Box::new(value)),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking(PhantomData))
    }
}

impl<'de, K: Kind, const N: usize> Wanted<'de> for Shape<Object<K, N>>
where
    K::Item: Deserialize<'de>,
{
    fn map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Object::take(map).map(Self::Is)
    }

    fn other(_: Value, name: &'static str) -> Self {
        Self::Not(name)
    }
}

impl<'de, K: Kind, const N: usize> Deserialize<'de> for Shape<Object<K, N>>
where
    K::Item: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Wanted<'de> for Shape<Vec<T>> {
    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = seq.next_element()? {
            all.push(one);
        }
        Ok(Self::Is(all))
    }

    fn other(_: Value, name: &'static str) -> Self {
        Self::Not(name)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shape<Vec<T>> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking(PhantomData))
    }
}

/// Any value, whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    /// An integer that is not negative.
    Integer(u64),
    /// Neither an integer nor a list or an object.
    Other(Value),
    List(Vec<Self>),
    /// Keys may stand twice.
    Object(Vec<(String, Self)>),
}

impl Tree {
    /// As it is named in an error.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Other(value) => value.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

impl<'de> Wanted<'de> for Tree {
    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(Self::Object(all))
    }

    fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = seq.next_element()? {
            all.push(one);
        }
        Ok(Self::List(all))
    }

    fn other(value: Value, _: &'static str) -> Self {
        value.as_u64().map_or(Self::Other(value), Self::Integer)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking(PhantomData))
    }
}

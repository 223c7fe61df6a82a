//! The conditions of the run, as [`crate::conditions`] lists them.

use minijinja::{Value, context};

use super::value;
use crate::Document;
use crate::conditions::conditions;

pub(super) fn figures(document: &Document) -> Value {
    context! { rows => value(&conditions(document)) }
}

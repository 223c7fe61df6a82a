//! What is known of the tasks of many sets as one matrix: a row a set, a column a task in the order
//! of the question. Where a set has fewer tasks, or a value is not known, there is -1: no time,
//! index or factor is negative.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

/// The matrix of rows of different lengths. Every value is below 2^63: times are, and factors are
/// cut there.
pub(super) fn matrix(
    py: Python<'_>,
    rows: usize,
    columns: usize,
    row: impl Fn(usize) -> Vec<Option<u64>>,
) -> PyResult<Bound<'_, PyArray2<i64>>> {
    let mut all = Vec::with_capacity(rows * columns);
    for at in 0..rows {
        let values = row(at);
        let numbers =
            values.iter().map(|value| value.map_or(-1, |value| i64::try_from(value).unwrap_or(i64::MAX)));
        all.extend(numbers.chain(std::iter::repeat(-1)).take(columns));
    }
    PyArray1::from_vec(py, all).reshape([rows, columns])
}

/// The same for probabilities: not a number where there is none.
pub(super) fn chances(
    py: Python<'_>,
    rows: usize,
    columns: usize,
    row: impl Fn(usize) -> Vec<Option<f64>>,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let mut all = Vec::with_capacity(rows * columns);
    for at in 0..rows {
        let numbers = row(at).into_iter().map(|value| value.unwrap_or(f64::NAN));
        all.extend(numbers.chain(std::iter::repeat(f64::NAN)).take(columns));
    }
    PyArray1::from_vec(py, all).reshape([rows, columns])
}

/// One value a set.
pub(super) fn column(py: Python<'_>, values: impl Iterator<Item = Option<u64>>) -> Bound<'_, PyArray1<i64>> {
    let numbers = values.map(|value| value.map_or(-1, |value| i64::try_from(value).unwrap_or(i64::MAX)));
    PyArray1::from_vec(py, numbers.collect())
}

//! A table in memory: Arrow record batches that every Arrow library takes over without a copy, and
//! columns as NumPy arrays.
//!
//! Arrow's PyCapsule interface (`__arrow_c_stream__`,
//! arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html): pyarrow, polars, pandas
//! and DuckDB ask for a capsule and share the buffers. NumPy takes an address by
//! `__array_interface__` (numpy.org, "The array interface protocol", version 3): its array keeps
//! the object that owns the buffer alive, and may not be written to.

use crate::error::Wrong;
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, SchemaRef};
use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

/// Rows that a notebook shows of each end.
const SHOWN: usize = 5;

/// Columns of one length with names; made by [`crate::samples`] and [`crate::events`].
#[pyclass(frozen, module = "stillcore")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Few enough rows to look at, from both ends; the second is empty where the first holds all.
    fn ends(&self) -> [Self; 2] {
        let count = self.__len__();
        let part = |from, rows| Self::new(self.schema.clone(), self.slice(from, rows));
        if count <= 2 * SHOWN {
            [part(0, count), part(0, 0)]
        } else {
            [part(0, SHOWN), part(count - SHOWN, SHOWN)]
        }
    }

    /// Rows of it, without copies.
    fn slice(&self, from: usize, rows: usize) -> Vec<RecordBatch> {
        let mut at = 0;
        let mut parts = Vec::new();
        for batch in &self.batches {
            let begin = from.clamp(at, at + batch.num_rows()) - at;
            let end = (from + rows).clamp(at, at + batch.num_rows()) - at;
            if begin < end {
                parts.push(batch.slice(begin, end - begin));
            }
            at += batch.num_rows();
        }
        parts
    }

    fn place(&self, name: &str) -> PyResult<usize> {
        self.schema.index_of(name).map_err(|_| PyKeyError::new_err(name.to_owned()))
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, in their order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What the table says of itself, by key: the texts of Arrow's schema metadata.
    #[getter]
    fn metadata(&self) -> std::collections::BTreeMap<String, String> {
        self.schema.metadata().clone().into_iter().collect()
    }

    /// The stream of Arrow's C data interface; the buffers are shared, nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, by the protocol; consumers cast what they did not get.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The schema of Arrow's C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(Wrong::sentence)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A column as a NumPy array.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let place = self.place(name)?;
        let parts: Vec<&ArrayRef> = self.batches.iter().map(|batch| batch.column(place)).collect();
        column(py, self.schema.field(place).data_type(), &parts)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok()
    }

    /// Every column as a NumPy array, by name.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for name in self.column_names() {
            let column = self.__getitem__(py, &name)?;
            all.set_item(name, column)?;
        }
        Ok(all)
    }

    /// The first and the last rows as HTML.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let [first, last] = self.ends();
        py.import("stillcore._notebook")?.call_method1("table", (first, last, self.__len__()))
    }

    fn __repr__(&self) -> String {
        format!("<stillcore.Table of {} rows: {}>", self.__len__(), self.column_names().join(", "))
    }
}

fn column<'py>(py: Python<'py>, kind: &DataType, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        DataType::Int64 => numbers::<Int64Type>(py, parts),
        DataType::UInt64 => numbers::<UInt64Type>(py, parts),
        DataType::Int32 => numbers::<Int32Type>(py, parts),
        DataType::UInt32 => numbers::<UInt32Type>(py, parts),
        DataType::Boolean => {
            let bits = parts.iter().flat_map(|part| part.as_boolean().iter());
            Ok(PyArray1::from_iter(py, bits.map(|bit| bit == Some(true))).into_any())
        }
        _ => texts(py, parts),
    }
}

/// One batch is shared, several are put together. Where values are absent, a masked array.
fn numbers<'py, T>(py: Python<'py>, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>>
where
    T: ArrowPrimitiveType,
    T::Native: Element,
{
    let values = if let [one] = parts {
        let owner = Bound::new(py, Shared { array: ArrayRef::clone(one) })?;
        py.import("numpy")?.call_method1("asarray", (owner,))?
    } else {
        let mut all = Vec::with_capacity(parts.iter().copied().map(Array::len).sum());
        parts.iter().for_each(|part| all.extend_from_slice(part.as_primitive::<T>().values()));
        all.into_pyarray(py).into_any()
    };
    if parts.iter().all(|part| part.null_count() == 0) {
        return Ok(values);
    }
    let absent = parts.iter().flat_map(|part| (0..part.len()).map(|row| part.is_null(row)));
    let mask = PyArray1::from_iter(py, absent);
    py.import("numpy.ma")?.call_method1("MaskedArray", (values, mask))
}

/// Texts are Python's: an array of objects, `None` where absent.
fn texts<'py>(py: Python<'py>, parts: &[&ArrayRef]) -> PyResult<Bound<'py, PyAny>> {
    let all = PyList::empty(py);
    for part in parts {
        match part.data_type() {
            DataType::Dictionary(_, _) => {
                let keys = part.as_dictionary::<Int32Type>();
                let words: Vec<Bound<'py, PyAny>> = keys
                    .values()
                    .as_string::<i32>()
                    .iter()
                    .map(|word| word.into_pyobject(py))
                    .collect::<Result<_, _>>()?;
                for key in keys.keys() {
                    match key {
                        Some(key) => all.append(&words[key as usize])?,
                        None => all.append(py.None())?,
                    }
                }
            }
            _ => part.as_string::<i32>().iter().try_for_each(|text| all.append(text))?,
        }
    }
    let kind = PyDict::new(py);
    kind.set_item("dtype", "object")?;
    py.import("numpy")?.call_method("array", (all,), Some(&kind))
}

/// A buffer that NumPy reads where it lies.
#[pyclass(frozen, module = "stillcore")]
struct Shared {
    array: ArrayRef,
}

#[pymethods]
impl Shared {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = self.array.to_data();
        let kind = match self.array.data_type() {
            DataType::Int64 => "i8",
            DataType::UInt64 => "u8",
            DataType::Int32 => "i4",
            _ => "u4",
        };
        let width: usize = kind[1..].parse().unwrap_or(1);
        let order = if cfg!(target_endian = "big") { '>' } else { '<' };
        let address = data.buffers()[0].as_ptr() as usize + data.offset() * width;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.array.len(),))?;
        interface.set_item("typestr", format!("{order}{kind}"))?;
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }
}

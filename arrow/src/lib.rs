//! The parts of Arrow that powersweep uses, under the paths of the crate `arrow`.
//!
//! The crate `arrow` always brings its kernels for casts, comparisons, arithmetic, strings and sorting: a seventh of the
//! time of a release build for code that nothing here calls. This crate leaves them out.

pub mod pages;

/// Arrays and their builders.
pub mod array {
    pub use arrow_array::builder::*;
    pub use arrow_array::cast::*;
    pub use arrow_array::iterator::*;
    pub use arrow_array::*;
    pub use arrow_data::ArrayData;
    pub use arrow_data::transform::MutableArrayData;
}

/// Memory below arrays.
pub mod buffer {
    pub use arrow_buffer::*;
}

/// Kernels that select rows.
pub mod compute {
    pub use arrow_select::concat::*;
    pub use arrow_select::filter::*;
    pub use arrow_select::interleave::*;
    pub use arrow_select::take::*;
}

/// Types of columns and of their values.
pub mod datatypes {
    pub use arrow_array::types::*;
    pub use arrow_array::{ArrowNativeTypeOp, ArrowNumericType, ArrowPrimitiveType};
    pub use arrow_buffer::{ArrowNativeType, ToByteSlice};
    pub use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
}

/// Errors of Arrow.
pub mod error {
    pub use arrow_schema::ArrowError;
}

/// Arrow's C interface: streams of record batches between libraries of one process.
#[cfg(feature = "ffi")]
pub mod ffi {
    pub use arrow_array::ffi::FFI_ArrowSchema;
    pub use arrow_array::ffi_stream::FFI_ArrowArrayStream;
}

/// Arrow's format of files and streams.
pub mod ipc {
    pub use arrow_ipc::*;
}

/// Bits of a buffer.
pub mod util {
    pub use arrow_buffer::bit_util;
}

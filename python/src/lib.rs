//! The native part of the Python package `powersweep`: calls of the library, without logic of its own.
//!
//! A function returns its result with the notes of the call. Its work runs on a thread of its own without the interpreter's lock; meanwhile the calling thread looks
//! for signals, so that Ctrl-C works.

mod calls;
#[cfg(feature = "figures")]
mod figures;
mod manifest;
mod place;
mod rows;
mod scheduler;
mod study;

use pyo3::prelude::*;

/// See the crate.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::calls::{conformance, exit_codes, experiment_of, experiment_of_text, main, shaken_set, simulate};
    #[cfg(feature = "figures")]
    #[pymodule_export]
    use crate::figures::{Drawing, plot};
    #[pymodule_export]
    use crate::manifest::manifest_text;
    #[pymodule_export]
    use crate::place::Place;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::study::Study;
}

//! Claims of papers as data, and their comparison with the rows of a sweep.
//!
//! A claims file lists published numbers and sentences, one `[[claims]]` each: what the paper states and where, the
//! tolerance, whether the claim is demanded, and the rows from which our value is computed. A claim whose number no paper
//! prints is a guard: `guard` says what the number is taken from, and the key of the number is `expected`. There is no expression
//! language: a value is a selection of rows and a fixed chain of operations.
//!
//! ```
//! let text = r#"
//! version = 1
//! paper = "mine2026"
//! title = "A paper"
//! manifests = ["quickstart"]          # the experiments; a selection that names none uses the first
//!
//! [runs.full-speed]                   # named conditions: labels and parameters are columns
//! policy = "plain"
//!
//! [[claims]]
//! id = "saving"                       # unique
//! text = "lowered gears save energy at {bsld_threshold}"
//! source = "Table 1"                  # where in the paper
//! per.bsld_threshold = [2, 3]         # one repetition a value, or a combination of values; `manifest` works, too
//! published = [0.05, 0.1]             # one number for all repetitions, or one each
//! within = { relative = 0.1, absolute = 0.001 }   # the larger tolerance counts
//! demanded = false                    # the default is true
//! why = "The paper does not state its log."       # required if the claim is not demanded
//! [claims.value]
//! column = "energy_total_j"
//! where = { policy = "saving" }
//! aggregate = "mean"                  # of the selected rows; without it there must be exactly one row
//! divided_by = { runs = "full-speed" }
//! one_minus = true
//! "#;
//! let claims = powersweep_claims::Claims::parse("mine2026.toml", text).expect("it is right");
//! assert_eq!(claims.paper(), "mine2026");
//! ```
//!
//! The types that serde reads declare all keys, and the documentation of a field is that of its key: `Claims`, `Claim` and
//! `Within` in `src/claim.rs`, `Selection` and `Step` in `src/selection.rs`. A list of one item may be written as the item.
//!
//! **A selection inside another** (`divided_by`, `minus`, `less_than`, `greater_than`) inherits the keys that it does
//! not set. If it names `runs`, it starts from their conditions instead, plus the inherited conditions on the columns
//! that it lists in `same`. `divided_by` and `minus` inherit manifest, table, column, conditions, `by` (unless they set
//! `by = []`) and `aggregate`. An alternative (`less_than`, `greater_than`, `of` in `within`) inherits all keys.
//!
//! This crate does no input or output: the caller runs the manifests and gives the rows as Arrow batches.

mod claim;
mod compare;
mod counts;
mod deserialize;
mod evaluate;
mod measure;
pub mod papers;
mod points;
pub mod presets;
mod published;
mod read;
mod rows;
mod selection;

pub use claim::Claims;
pub use counts::{Counts, Tally};
pub use evaluate::{ClaimKind, Difference, Finding, Verdict};
pub use points::{Lacking, Role, Row};
pub use presets::{Preset, Presets, Shape};
pub use rows::{Needed, Rows};

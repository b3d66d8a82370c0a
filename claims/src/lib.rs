//! Claims of papers as data, and their comparison with the rows of a sweep.
//!
//! A claims file lists published numbers and sentences, one `[[claims]]` each: what the paper states and where, the
//! tolerance, whether the claim is demanded, and the rows from which our value is computed. There is no expression
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
//! **A selection** has these keys:
//!
//! | key | meaning |
//! |---|---|
//! | `column` | the column of the value: of the table, else of the task in `tasks`; also below |
//! | `where` | conditions: a column and its value, or a list of alternative values; `"unlimited"` is infinity |
//! | `runs` | the name of a set of conditions; `where` adds to them and overrides them |
//! | `manifest`, `table` | where the rows are; the defaults are the first of `manifests`, and `tasks` |
//! | `element` in `where`, `per`, `by` | a list column has one row an element; `element` is its place, from 1 |
//! | `by` | columns by which the rows are grouped; each group has a value |
//! | `aggregate` | of a group's rows: `mean`, `sum`, `min`, `max`, `count`, `standard-error` (of the mean), `p50` etc. |
//! | `divided_by`, `minus` | another selection; if it is grouped, the operation works group by group |
//! | `one_minus`, `times`, `absolute` | one minus the value; times a number; absolute value; in this order, after `minus` |
//! | `then` | last steps, which aggregate groups: `[{ aggregate = "mean", over = ["workload"] }]`; without `over` all |
//!
//! A step `{ aggregate = "greatest-change", over = ["x"] }` gives the greatest ratio of neighbouring values along a
//! column.
//!
//! **A selection inside another** (`divided_by`, `minus`, `less_than`, `greater_than`) inherits the keys that it does
//! not set. If it names `runs`, it starts from their conditions instead, plus the inherited conditions on the columns
//! that it lists in `same`. `divided_by` and `minus` inherit manifest, table, column, conditions, `by` (unless they set
//! `by = []`) and `aggregate`. An alternative (`less_than`, `greater_than`, `of` in `within`) inherits all keys.
//!
//! **Comparisons**, all of which must hold:
//! - `published` with `within`: `relative`, `absolute`, or `of`, an alternative whose value is the tolerance, such as
//!   the half-width of a confidence interval. The largest of the given tolerances counts.
//! - `at_least`, `at_most`, `above`, `below`: a number, or one a repetition.
//! - `less_than`, `greater_than`: a selection.
//! - `ascending = { COLUMN = [...] }`: the values under these conditions increase strictly.
//!
//! With `paired = ["seed"]`, `less_than`, `greater_than` and `ascending` compare group by group. The mean difference
//! decides; it is shown with its standard error.
//!
//! This crate does no input or output: the caller runs the manifests and gives the rows as Arrow batches.

mod compare;
mod evaluate;
mod file;
mod measure;
pub mod papers;
mod per;
mod points;
mod preset_file;
pub mod presets;
mod read;
mod rows;
mod selection;

pub use evaluate::{Finding, Verdict};
pub use file::Claims;
pub use points::{Lacking, Role, Row};
pub use presets::{Preset, Presets, Shape};
pub use rows::{Needed, Rows};

//! What papers claim, as data, and how the rows of a sweep are compared with it.
//!
//! A claims file states published numbers and sentences, one `[[claims]]` each: what is published and where, how near
//! ours must be, whether that is demanded, and from which rows ours comes. There is no expression language: a value is
//! a selection of rows and a fixed chain of operations.
//!
//! ```
//! let text = r#"
//! version = 1
//! paper = "mine2026"
//! title = "A paper"
//! manifests = ["quickstart"]          # the experiments; the first is that of a selection which names none
//!
//! [runs.full-speed]                   # conditions with a name: labels and parameters are columns
//! policy = "plain"
//!
//! [[claims]]
//! id = "saving"                       # unique
//! text = "lowered gears save energy at {bsld_threshold}"
//! source = "Table 1"                  # where in the paper
//! per.bsld_threshold = [2, 3]         # repeated for each value (several: each combination; `manifest` is one too)
//! published = [0.05, 0.1]             # one for all, or one a repetition
//! within = { relative = 0.1, absolute = 0.001 }   # either suffices
//! demanded = false                    # true unless said
//! why = "The paper does not state its log."       # needed where it is not demanded
//! [claims.value]
//! column = "energy_total_j"
//! where = { policy = "saving" }
//! aggregate = "mean"                  # of the selected rows; without it there must be exactly one
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
//! | `column` | the column of the value: the table's own, else that of its task in `tasks`; so everywhere below |
//! | `where` | conditions: a column and its value, or a list of which one must hold; `"unlimited"` is infinity |
//! | `runs` | the name of a set of conditions, which `where` adds to and changes |
//! | `manifest`, `table` | where the rows are: the first of `manifests`, and `tasks`, unless said |
//! | `element` in `where`, `per`, `by` | a list column gives a row for each element: this is its place, from 1 |
//! | `by` | columns by whose values rows are grouped; a value for each group |
//! | `aggregate` | of a group's rows: `mean`, `sum`, `min`, `max`, `count`, `standard-error` (of the mean), `p50` etc. |
//! | `divided_by`, `minus` | a selection: group by group where it is grouped too |
//! | `one_minus`, `times`, `absolute` | one minus the value; times a number; without its sign; in this order, last |
//! | `then` | steps that make one value of the groups: `[{ aggregate = "mean", over = ["workload"] }]`; without `over` all |
//!
//! A step `{ aggregate = "greatest-change", over = ["x"] }` gives the greatest ratio of neighbours along a column.
//!
//! **A selection inside another** (`divided_by`, `minus`, `less_than`, `greater_than`) takes over what it does not say.
//! If it names `runs`, it begins with their conditions instead, plus those on the columns that it lists in `same`.
//! `divided_by` and `minus` take over manifest, table, column, conditions, `by` (unless they say `by = []`) and
//! `aggregate`; an alternative (`less_than`, `greater_than`, `of` in `within`) everything.
//!
//! **Comparisons**, all of which must hold: `published` with `within` (`relative`, `absolute`, or `of`: an alternative
//! whose value is the tolerance, such as some half-widths; the greatest counts); `at_least`, `at_most`, `above`, `below`
//! (a number, or one a repetition); `less_than`, `greater_than` (a selection); `ascending = { COLUMN = [...] }`: the
//! values at these conditions rise strictly. With `paired = ["seed"]` the last three compare group by group, and their
//! mean difference decides; it is shown with its standard error.
//!
//! This crate does no input or output: the caller runs the manifests and gives the rows as Arrow batches.

mod compare;
mod evaluate;
mod file;
mod measure;
pub mod papers;
mod per;
mod read;
mod rows;
mod selection;

pub use evaluate::{Finding, Verdict};
pub use file::Claims;
pub use rows::{Needed, Rows};

//! The command line of `powersweep events`.

use clap::Args;

use crate::args::TablesArgs;
use crate::quantities;

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub from: TablesArgs,
    /// Continue until the experiment ends, also while the coordinator restarts. Ends with the code of `submit --wait`.
    #[arg(long, short)]
    pub follow: bool,
    /// Only events since an instant, such as 2026-11-25T10:00:00Z, or of the last time, such as 10m.
    #[arg(long, value_name = "WHEN", value_parser = quantities::instant_us)]
    pub since: Option<i64>,
}

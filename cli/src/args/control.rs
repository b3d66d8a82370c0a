//! The command lines of the commands that change an experiment.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use powersweep::Place;
use powersweep_proto::v1::FailureKind;

use crate::args::{CoordinatorArgs, DataArgs};
use crate::exit::Failure;
use crate::quantities::time;

/// An experiment and its coordinator.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    /// Act on the experiment although another user submitted it.
    #[arg(long)]
    pub any_owner: bool,
}

impl ControlArgs {
    /// Where the experiment is.
    pub fn place(&self) -> Result<Place, Failure> {
        Ok(Place { any_owner: self.any_owner, ..self.coordinator.place(&self.data)? })
    }
}

#[derive(Debug, Args)]
pub struct FlushArgs {
    /// Name of the experiment.
    pub experiment: String,
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct UpgradeArgs {
    #[command(flatten)]
    pub coordinator: CoordinatorArgs,
    #[command(flatten)]
    pub data: DataArgs,
    /// Stop tasks that still run after this time, such as 10m: they run again. By default they may finish.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub drain_limit: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// Retry only this task; may be repeated.
    #[arg(long, value_name = "INDEX")]
    pub index: Vec<u64>,
    /// Retry only failures of this kind; may be repeated.
    #[arg(long, value_name = "KIND", value_parser = failure_kinds())]
    pub kind: Vec<FailureKind>,
}

/// The kinds of failures, named as in the `failures` table.
fn failure_kinds() -> impl TypedValueParser<Value = FailureKind> {
    PossibleValuesParser::new(FailureKind::all().map(FailureKind::word))
        .map(|word| FailureKind::all().find(|kind| kind.word() == word).expect("a possible value"))
}

#[derive(Debug, Args)]
pub struct PriorityArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// From -1000 to 1000; a higher priority is served first. Experiments of equal priority share the slots.
    #[arg(allow_negative_numbers = true)]
    pub priority: i32,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    #[command(flatten)]
    pub control: ControlArgs,
    /// Also delete its rows, in all tables.
    #[arg(long)]
    pub data_too: bool,
    /// Delete the experiment although it has tasks to run; running tasks are stopped first.
    #[arg(long)]
    pub force: bool,
}

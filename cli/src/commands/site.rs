//! `powersweep site`: site files.

use std::io::Write;

use powersweep::block_on;
use powersweep::launcher::batch::{BatchError, commands};
use powersweep::launcher::slurm;
use powersweep_dataset::writing::cannot_write;
use powersweep_experiments::reading::unknown;
use powersweep_launch::slurm::Partition;
use powersweep_launch::{JobSite, System};

use crate::args::SiteInitArgs;
use crate::exit::{Failure, Kind, Outcome, failure};
use crate::screen;

/// Writes a site file from what Slurm says.
pub fn init(args: &SiteInitArgs) -> Outcome {
    let (facts, partitions) = block_on(async {
        let cannot = |error: BatchError| failure!(Failure, "{error}\nrun this command on a login node");
        Ok((commands(System::Slurm).facts().await.map_err(cannot)?, slurm::partitions().await.map_err(cannot)?))
    })?;
    let text = JobSite::described(&facts, &partitions, chosen(args, &partitions)?)
        .map_err(|error| failure!(Failure, "cannot write a site file: {error}"))?;
    match &args.output {
        None => screen::print_exact(text.trim_end()),
        Some(file) => {
            let cannot = |error: std::io::Error| Failure { kind: Kind::Usage, ..cannot_write(file, &error) };
            let created = std::fs::File::create_new(file).map_err(cannot)?;
            { created }.write_all(text.as_bytes()).map_err(cannot)?;
            screen::print(&format!(
                "wrote {}: check it, and give it to `powersweep launch slurm --site`",
                file.display()
            ))
        }
    }
}

/// The partition of the command line, else the cluster's default, else the first one that is up.
fn chosen<'a>(args: &SiteInitArgs, partitions: &'a [Partition]) -> Result<&'a Partition, Failure> {
    let Some(name) = &args.partition else {
        let default = partitions.iter().find(|partition| partition.is_default);
        let found = default.or_else(|| partitions.iter().find(|partition| partition.is_up)).or(partitions.first());
        return found.ok_or_else(|| {
            failure!(
                Failure,
                "Slurm shows no partition to this user: run this on a login node, or name one by --partition"
            )
        });
    };
    let names: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
    let found = partitions.iter().find(|partition| partition.name == *name);
    found.ok_or_else(|| Failure::new(Kind::Usage, unknown("partition", name, &names)))
}

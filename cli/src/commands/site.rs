//! `powersweep site`: site files.

use std::io::Write;

use powersweep::block_on;
use powersweep::launcher::slurm::{self as batch, BatchError};
use powersweep_experiments::reading::unknown;
use powersweep_launch::slurm::{Facts, Partition};
use powersweep_launch::{Site, SlurmSite};

use crate::args::SiteInitArgs;
use crate::exit::{Failure, Kind, Outcome, failure};
use crate::screen;

/// Longest time limit that a site file gets by itself: longer jobs wait longer.
const TIME: &str = "4:00:00";

/// Writes a site file from what Slurm says.
pub fn init(args: &SiteInitArgs) -> Outcome {
    let (facts, partitions) = block_on(async {
        let cannot = |error: BatchError| failure!(Failure, "{error}\nrun this command on a login node");
        Ok((batch::facts().await.map_err(cannot)?, batch::partitions().await.map_err(cannot)?))
    })?;
    let text = describe(&facts, &partitions, chosen(args, &partitions)?)?;
    match &args.output {
        None => screen::print(text.trim_end()),
        Some(file) => {
            let cannot = |error: std::io::Error| failure!(Usage, "cannot write {}: {error}", file.display());
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
        return found.ok_or_else(|| failure!(Failure, "Slurm shows no partition to this user"));
    };
    let names: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
    let found = partitions.iter().find(|partition| partition.name == *name);
    found.ok_or_else(|| Failure::new(Kind::Usage, unknown("partition", name, &names)))
}

fn describe(facts: &Facts, partitions: &[Partition], chosen: &Partition) -> Result<String, Failure> {
    let site = Site {
        name: facts.cluster.clone().unwrap_or_default(),
        slurm: SlurmSite {
            partition: Some(chosen.name.clone()),
            time: Some(shorter(chosen.time.as_deref())),
            cpus: Some(chosen.cpus),
            max_array: facts.max_array,
            ..SlurmSite::default()
        },
    };
    let site = toml::to_string(&site).map_err(|error| failure!(Failure, "cannot write a site file: {error}"))?;
    let version = facts.version.as_deref().unwrap_or("of an unknown version");
    let mut text = format!("# Site file of powersweep, from Slurm {version}. Partitions of this cluster:\n");
    for partition in partitions {
        let Partition { name, time, cpus, memory_mib, nodes, .. } = partition;
        let time = time.as_deref().unwrap_or("no limit");
        let up = if partition.is_up { "" } else { ", down" };
        text += &format!("#   {name}: {nodes} nodes, {cpus} processors, {memory_mib} MiB, at most {time}{up}\n");
    }
    if let Some(mode) = facts.preempt_mode.as_deref().filter(|mode| *mode != "OFF") {
        text += &format!("# Preempted jobs: {mode}. Their tasks run again elsewhere.\n");
    }
    text += "# Further keys: max_nodes (1 by default), account, qos, constraint, memory = \"16G\",\n";
    text += "# options = [\"--hint=nomultithread\"],\n";
    text += "# prologue = [\"module load powersweep\"]. `cpus` counts one slot for each processor.\n\n";
    Ok(text + &site)
}

/// The shorter of the partition's limit and the usual one.
fn shorter(limit: Option<&str>) -> String {
    let seconds = |text: &str| powersweep_launch::slurm::time_limit(text).ok();
    let limit = limit.filter(|limit| seconds(limit) < seconds(TIME));
    limit.unwrap_or(TIME).to_owned()
}

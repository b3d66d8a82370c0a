//! Site files: what a cluster demands of jobs, once for all of its users.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::slurm::{self, Partition};
use crate::{Facts, System};

/// Longest time limit that a site file gets by itself: longer jobs wait longer.
const TIME: &str = "4:00:00";

/// A site file. Options of the command line come before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// Name of the cluster.
    pub name: String,
    /// The demands on jobs of Slurm.
    #[serde(skip_serializing_if = "JobSite::is_empty")]
    pub slurm: JobSite,
    /// The demands on jobs of PBS.
    #[serde(skip_serializing_if = "JobSite::is_empty")]
    pub pbs: JobSite,
}

/// The demands of a site on jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JobSite {
    /// The partition; under PBS, the queue.
    #[serde(skip_serializing_if = "Option::is_none", alias = "queue")]
    pub partition: Option<String>,
    /// The account that pays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The quality of service; PBS has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// Features that nodes must have; under PBS, further resources of them, such as "cpu_type=milan".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Time limit of an allocation, as the batch system writes it: "4:00:00".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Processors of an allocation on each node; one slot for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u16>,
    /// Memory of an allocation on each node, as the batch system writes it: "16G"; of PBS "16gb".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Maximum number of nodes at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u64>,
    /// Maximum number of elements of one array job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_array: Option<u64>,
    /// Further options of sbatch or qsub, such as "--hint=nomultithread".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Lines of the script before the worker starts, such as "module load powersweep".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prologue: Vec<String>,
}

/// Why a site file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The file cannot be read.
    #[error("cannot read the site file {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no site file.
    #[error("{file} is no site file: {reason}")]
    Parse {
        /// The file.
        file: String,
        /// The place and the reason.
        reason: String,
    },
}

impl Site {
    /// The site file at a path.
    ///
    /// # Errors
    /// See [`SiteError`].
    pub fn read(file: &Path) -> Result<Site, SiteError> {
        let name = || file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|source| SiteError::Read { file: name(), source })?;
        Site::parse(&text, &name())
    }

    /// The site file with this text.
    ///
    /// # Errors
    /// [`SiteError::Parse`].
    pub fn parse(text: &str, file: &str) -> Result<Site, SiteError> {
        let wrong = |reason: String| SiteError::Parse { file: file.to_owned(), reason };
        let site: Site = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        match site.of(System::Slurm).with_several_lines().or(site.of(System::Pbs).with_several_lines()) {
            Some(line) => Err(wrong(format!("{line:?} has more than one line"))),
            None => Ok(site),
        }
    }

    /// The demands on jobs of a batch system.
    pub fn of(&self, system: System) -> &JobSite {
        match system {
            System::Slurm => &self.slurm,
            System::Pbs => &self.pbs,
        }
    }
}

impl JobSite {
    /// Whether it demands nothing.
    fn is_empty(&self) -> bool {
        *self == JobSite::default()
    }

    /// A value with several lines: the script of a job would have lines that nobody sees in the option.
    pub fn with_several_lines(&self) -> Option<&str> {
        let JobSite { partition, account, qos, constraint, time, memory, options, prologue, .. } = self;
        let values = [partition, account, qos, constraint, time, memory].into_iter().flatten();
        let mut lines = values.chain(options).chain(prologue).map(String::as_str);
        lines.find(|line| line.contains(['\n', '\r']))
    }

    /// The text of a site file for a partition, from what Slurm says about the cluster.
    pub fn described(facts: &Facts, partitions: &[Partition], chosen: &Partition) -> Result<String, toml::ser::Error> {
        let site = Site {
            name: facts.cluster.clone().unwrap_or_default(),
            slurm: JobSite {
                partition: Some(chosen.name.clone()),
                time: Some(shorter(chosen.time.as_deref())),
                cpus: Some(chosen.cpus),
                max_array: facts.max_array,
                ..JobSite::default()
            },
            pbs: JobSite::default(),
        };
        let site = toml::to_string(&site)?;
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
}

/// The shorter of the partition's limit and the usual one.
fn shorter(limit: Option<&str>) -> String {
    let seconds = |text: &str| slurm::time_limit(text).ok();
    let limit = limit.filter(|limit| seconds(limit) < seconds(TIME));
    limit.unwrap_or(TIME).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_file_says_what_is_wrong_with_it() {
        let site = Site::parse("name = \"c\"\n[slurm]\npartition = \"batch\"\ncpus = 64\n", "site.toml").unwrap();
        assert_eq!((site.slurm.partition.as_deref(), site.slurm.cpus), (Some("batch"), Some(64)));
        let pbs = Site::parse("[pbs]\nqueue = \"workq\"\n", "site.toml").unwrap();
        assert_eq!((pbs.pbs.partition.as_deref(), &pbs.slurm), (Some("workq"), &JobSite::default()));
        let refused = |text: &str| Site::parse(text, "site.toml").unwrap_err().to_string();
        assert!(refused("[slurm]\npartitions = \"batch\"").contains("unknown field `partitions`"));
        assert!(refused("[slurm]\ncpus = \"many\"").contains("line 2"));
        assert!(refused("[slurm]\nprologue = [\"a\\nb\"]").contains("more than one line"));
        assert!(refused("[slurm]\naccount = \"a\\n#SBATCH --uid=0\"").contains("more than one line"));
        let missing = Site::read(Path::new("/nowhere/site.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read the site file /nowhere/site.toml"), "{missing}");
    }
}

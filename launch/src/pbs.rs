//! OpenPBS and PBS Professional: scripts of jobs, and answers of its commands.
//!
//! Answers about jobs are read as JSON, which `qstat -F json` prints since PBS Professional 18.2.

mod answers;

pub use answers::{facts, job_id, jobs, selected};

use std::fmt::Write;
use std::time::Duration;

use crate::job::{WorkerJob, clock_time, command};

/// The time that PBS writes as seconds, minutes:seconds or hours:minutes:seconds.
///
/// # Errors
/// The text is no such time.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time of PBS, such as 4:00:00");
    let fields: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    if fields.len() > 3 {
        return Err(wrong());
    }
    let add = |sum: u64, field: u64| sum.checked_mul(60)?.checked_add(field);
    let seconds = fields.into_iter().try_fold(0, add).filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

/// The script of a job, or of an array job of which each element is one allocation.
pub fn script(job: &WorkerJob) -> String {
    with_body(job, &job.replace_shell())
}

/// A script with the same head and another body.
pub fn with_body(job: &WorkerJob, body: &str) -> String {
    let (request, site) = (&job.request, &job.request.site);
    let mut text = "#!/bin/bash\n".to_owned();
    let mut option = |name: &str, value: &str| {
        // PBS reads the quotes of its lines as a shell does, and nothing else that a shell would read.
        let is_word = !value.is_empty() && !value.contains([' ', '\t', '\'', '"', '\\']);
        let value = if is_word { value.to_owned() } else { command(value, &[]) };
        let _ = writeln!(text, "#PBS {name} {value}");
    };
    option("-N", &request.name);
    let more = |(name, value): (&str, &Option<String>)| value.as_ref().map(|value| format!(":{name}{value}"));
    let memory = more(("mem=", &site.memory)).unwrap_or_default();
    let constraint = more(("", &site.constraint)).unwrap_or_default();
    option("-l", &format!("select={}:ncpus={}{memory}{constraint}", job.nodes, job.cpus));
    option("-l", &format!("walltime={}", clock_time(request.time)));
    for (name, value) in [("-q", &site.partition), ("-A", &site.account)] {
        if let Some(value) = value {
            option(name, value);
        }
    }
    // An array job must be rerunnable. Its elements write into the folder themselves: PBS copies the outputs of jobs at their
    // end, and does not when a node is lost.
    text += "#PBS -r y\n#PBS -o /dev/null\n#PBS -e /dev/null\n";
    for line in &site.options {
        let _ = writeln!(text, "#PBS {line}");
    }
    let (folder, limit) = (command(&request.folder, &[]), request.time.as_secs());
    let _ = write!(
        text,
        "\njob=${{PBS_JOBID%%.*}}\njob=${{job%%\\[*}}\n\
         export POWERSWEEP_ALLOCATION=\"${{job}}_${{PBS_ARRAY_INDEX:-1}}\"\n\
         export POWERSWEEP_ALLOCATION_END=$(($(date +%s) + {limit}))\n\
         exec >>{folder}/\"$POWERSWEEP_ALLOCATION\".out 2>>{folder}/\"$POWERSWEEP_ALLOCATION\".err\n"
    );
    text += &request.prologue();
    text + body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobSite, Request};

    #[test]
    fn times_are_read_as_pbs_reads_them() {
        let seconds = |text: &str| time_limit(text).map(|time| time.as_secs());
        assert_eq!(seconds("30"), Ok(30));
        assert_eq!(seconds("30:15"), Ok(1_815));
        assert_eq!(seconds("4:00:00"), Ok(14_400));
        for wrong in ["", "0", "1:2:3:4", "-5", "4h", "1-0", "99999999999999999:0:0"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_script_has_the_options_of_the_site_and_names_its_allocation() {
        let site = JobSite {
            partition: Some("workq".to_owned()),
            account: Some("a b".to_owned()),
            memory: Some("16gb".to_owned()),
            constraint: Some("cpu_type=milan".to_owned()),
            options: vec!["-P project".to_owned()],
            prologue: vec!["module load powersweep".to_owned()],
            ..JobSite::default()
        };
        let request = Request {
            name: "powersweep-1".to_owned(),
            folder: "/shared/a b".to_owned(),
            time: Duration::from_secs(14_400),
            site,
            program: "/bin/powersweep".to_owned(),
        };
        let job = WorkerJob { request, nodes: 1, cpus: 8, drain_limit: Duration::from_secs(10), arguments: Vec::new() };
        let script = script(&job);
        for line in [
            "#PBS -N powersweep-1",
            "#PBS -l select=1:ncpus=8:mem=16gb:cpu_type=milan",
            "#PBS -l walltime=4:00:00",
            "#PBS -q workq",
            "#PBS -A 'a b'",
            "#PBS -P project",
            "module load powersweep",
            "exec /bin/powersweep worker --slots 8 --drain-limit 10s",
        ] {
            assert!(script.lines().any(|found| found == line), "{line} in\n{script}");
        }
        assert!(script.contains("exec >>'/shared/a b'/\"$POWERSWEEP_ALLOCATION\".out"), "{script}");
    }
}

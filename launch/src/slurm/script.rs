//! Scripts of jobs.

use std::fmt::Write;
use std::time::Duration;

use crate::job::{Request, WorkerJob, clock_time, command};

/// A job with a coordinator and the launcher of its workers.
#[derive(Debug, Clone, PartialEq)]
pub struct CoordinatorJob {
    /// The request that the job shares with the others.
    pub request: Request,
    /// Arguments of `powersweep serve`.
    pub serve: Vec<String>,
    /// Arguments of `powersweep health`, which succeeds once the coordinator serves.
    pub health: Vec<String>,
    /// Arguments of `powersweep launch slurm`.
    pub launch: Vec<String>,
}

/// Time between the signal and the end of the allocation, beyond the drain limit: for the last hand-in.
const SIGNAL_RESERVE: Duration = Duration::from_secs(20);

/// Time that a coordinator gets to publish its rows before its job ends.
const HAND_OVER: Duration = Duration::from_secs(120);

/// The lines that sbatch reads. `output`: the pattern of output files.
fn head(request: &Request, name: &str, output: &str) -> String {
    let mut text = "#!/bin/bash\n".to_owned();
    let folder = request.folder.replace('%', "%%");
    let mut option = |name: &str, value: &str| {
        // Slurm reads its lines with quotes and backslashes, as a shell does.
        let value = value.replace('\\', r"\\").replace('"', "\\\"");
        let _ = writeln!(text, "#SBATCH --{name}=\"{value}\"");
    };
    option("job-name", name);
    option("output", &format!("{folder}/{output}.out"));
    option("error", &format!("{folder}/{output}.err"));
    option("time", &clock_time(request.time));
    let site = &request.site;
    let chosen = [("partition", &site.partition), ("account", &site.account), ("qos", &site.qos)];
    for (name, value) in chosen.into_iter().chain([("constraint", &site.constraint)]) {
        if let Some(value) = value {
            option(name, value);
        }
    }
    // A requeued job continues its output.
    text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
    for line in &site.options {
        let _ = writeln!(text, "#SBATCH {line}");
    }
    text
}

/// The script of an array job, of which each element is one allocation.
pub fn script(job: &WorkerJob) -> String {
    let limit = job.request.time.as_secs();
    // Slurm before 23.02 does not tell a job when it ends.
    let mut body = "export POWERSWEEP_ALLOCATION=\"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\"\n".to_owned();
    let _ = writeln!(body, "export SLURM_JOB_END_TIME=\"${{SLURM_JOB_END_TIME:-$(($(date +%s) + {limit}))}}\"");
    if job.nodes > 1 {
        let _ = writeln!(body, "exec srun --kill-on-bad-exit=0 {}", job.command());
    } else {
        body += &job.replace_shell();
    }
    with_body(job, &body)
}

/// A script with the same head and another body.
pub fn with_body(job: &WorkerJob, body: &str) -> String {
    let mut text = head(&job.request, &job.request.name, "%A_%a");
    let _ = writeln!(
        text,
        "#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task={}",
        job.nodes, job.cpus
    );
    if let Some(memory) = &job.request.site.memory {
        let _ = writeln!(text, "#SBATCH --mem={memory}");
    }
    let seconds = (job.drain_limit + SIGNAL_RESERVE).as_secs();
    // Slurm signals either the script, which the worker replaces, or the steps that srun started.
    let _ = writeln!(text, "#SBATCH --signal={}TERM@{seconds}\n", if job.nodes == 1 { "B:" } else { "" });
    text += &job.request.prologue();
    text + body
}

impl CoordinatorJob {
    /// The script of a job that queues its successor first, and cancels it when no work is left.
    pub fn script(&self, file: &str) -> String {
        let Request { name, folder, program, .. } = &self.request;
        let mut text = head(&self.request, &format!("{name}-coordinator"), "coordinator-%j");
        let seconds = HAND_OVER.as_secs();
        let _ = writeln!(text, "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --signal=B:TERM@{seconds}\n");
        text += &self.request.prologue();
        let (folder, file) = (command(folder, &[]), command(file, &[]));
        let _ = write!(
            text,
            r#"# A requeued job has its successor already.
successor={folder}/successor-of-$SLURM_JOB_ID
[ -s "$successor" ] || sbatch --parsable --dependency=afterany:$SLURM_JOB_ID {file} >"$successor"

{} &
serve=$!
until {}; do
    kill -0 $serve 2>/dev/null || exit 1
    sleep 1
done
# `launch stop` asks before it ends the coordinator, too.
export POWERSWEEP_COORDINATOR_JOB=$SLURM_JOB_ID
{} &
launch=$!
trap 'kill -TERM $launch $serve 2>/dev/null' TERM
wait -n $serve $launch
if ! kill -0 $launch 2>/dev/null && wait $launch; then
    # No work is left.
    scancel "$(cut -d ';' -f 1 "$successor")"
fi
# From here on, a signal must not end a wait: rows may still be written.
trap '' TERM
kill -TERM $launch $serve 2>/dev/null
wait $launch
wait $serve
"#,
            command(program, &self.serve),
            command(program, &self.health),
            command(program, &self.launch),
        );
        text
    }
}

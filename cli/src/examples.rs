//! The examples of each command's `--help`. Each line is a command, at least two spaces, and the effect.

pub const RUN: &str = "Examples:
  powersweep run                               the shipped quickstart, on synthetic jobs
  powersweep run sweep.toml --data /big/disk   your own manifest; results in another folder
  powersweep run etinski2010 --traces ~/logs   a paper's sweep, on the logs of this folder";
pub const SHARD: &str = "Examples:
  powersweep shard sweep.toml --index 0 --of 2     the first half; --index 1 runs the other one, anywhere
  powersweep shard sweep.toml --of 16              in a Slurm array, after `sbatch --array=0-15`
  powersweep shard sweep.toml --of 16 --time-limit 3:55:00   in a batch job of four hours";
pub const CHECK: &str = "Examples:
  powersweep check --list                              the papers and their number of claims
  powersweep check etinski2010 --traces ~/logs         every published number beside the result
  powersweep check etinski2010 --demanded --json        demanded claims, as JSON";
pub const PLAN: &str = "Examples:
  powersweep plan sweep.toml             the axes and the number of done tasks
  powersweep plan sweep.toml --index 12  one task: its parameters, and why it would run";
pub const SIMULATE: &str = "Examples:
  powersweep simulate -s gear_rule=bsld -s bsld_threshold=2        synthetic jobs under another gear rule
  powersweep simulate --log KTH-SP2-1996-2.1-cln --traces ~/logs   a real log
  powersweep simulate sweep.toml --index 12 --jobs jobs.csv        task 12 of a sweep, and its jobs
  powersweep simulate sweep.toml --index 12 --batsim schedule      for evalys, and as an SWF log
  powersweep simulate -s capacity_rule=two-level -s two_level_procs=64 --series series.csv  active procs";
pub const LP: &str = "Examples:
  powersweep lp aldaoud2011                 capacity, allocations and loads of a paper's systems
  powersweep lp sweep.toml --json           your own systems, as JSON";
pub const SERVE: &str = "Examples:
  powersweep serve                         for workers on this machine
  powersweep serve --listen 0.0.0.0:7450   for workers on other machines, too";
pub const DASHBOARD: &str = "Examples:
  powersweep dashboard                                of the coordinator that serves ./results/data
  powersweep dashboard --access client.json           of a coordinator on another machine
  powersweep dashboard --listen unix:$HOME/farm.sock  then, at home: ssh -L 8080:/home/me/farm.sock CLUSTER";
pub const WORKER: &str = "Examples:
  powersweep worker                                              for the coordinator that serves ./results/data
  powersweep worker --access worker.json --slots 8               on a machine without that folder
  powersweep worker --time-limit 3:55:00 --idle-limit 10m        in a batch job of four hours
  powersweep worker --task-deadline 1h --task-max-memory 4GiB    with limits for each task";
pub const SUBMIT: &str = "Examples:
  powersweep submit sweep.toml --dry-run  show the tasks that would run, and submit nothing
  powersweep submit sweep.toml --wait     submit it and wait until it has ended
  powersweep submit sweep.toml --priority 5  run it before experiments of lower priority
  powersweep submit sweep.toml --restart  after a change of versions: move the old rows to NAME@N";
pub const STATUS: &str = "Examples:
  powersweep status                                     experiments in ./results/data
  powersweep status my-sweep --json                     one experiment, as JSON
  powersweep status --watch                             refresh until interrupted
  powersweep status --access client.json                a coordinator on another machine";
pub const PAUSE: &str = "Examples:
  powersweep pause my-sweep                         an experiment in ./results/data
  powersweep pause my-sweep --access client.json    at a coordinator on another machine";
pub const RESUME: &str = "Example:
  powersweep resume my-sweep";
pub const CANCEL: &str = "Examples:
  powersweep cancel my-sweep
  powersweep cancel their-sweep --any-owner   of another user";
pub const RETRY: &str = "Examples:
  powersweep retry my-sweep                         every task that failed for good
  powersweep retry my-sweep --index 12 --index 40   two tasks
  powersweep retry my-sweep --kind memory           tasks that needed too much memory";
pub const PRIORITY: &str = "Examples:
  powersweep priority my-sweep 10   run before experiments of lower priority
  powersweep priority my-sweep -1   run only when no experiment of higher priority has tasks";
pub const FLUSH: &str = "Example:
  powersweep flush my-sweep   before other tools read a running sweep";
pub const PRUNE: &str = "Example:
  powersweep prune my-sweep   the rows in my-sweep@left are deleted";
pub const DELETE: &str = "Examples:
  powersweep delete my-sweep              delete the state, keep the rows
  powersweep delete my-sweep --data-too   delete the rows, too";
pub const PREPARE_UPGRADE: &str = "Examples:
  powersweep prepare-upgrade                       wait for running tasks
  powersweep prepare-upgrade --drain-limit 10m     for at most ten minutes";
pub const RESULTS: &str = "Examples:
  powersweep results my-sweep                                       the first rows, with the columns that vary
  powersweep results my-sweep --columns task_index,policy,wait_s_mean --format csv
  powersweep results my-sweep --sort energy_total_j --where seed=1 --rows 5   five tasks with the least energy
  powersweep results my-sweep --by wq_threshold --columns wait_s_mean,energy_total_j   means over the seeds
  powersweep results my-sweep --by wq_threshold --columns energy_total_j --ratio-to wq_threshold=0 --format latex
  powersweep results my-sweep --table failures                      every failed attempt
  powersweep results my-sweep --format parquet --output tasks.parquet  all rows in one file
  powersweep results my-sweep --access client.json                  from a coordinator on another machine";
pub const COMPARE: &str = "Examples:
  powersweep compare my-sweep:bsld_threshold=1.5 my-sweep:bsld_threshold=3   the same seeds under two thresholds
  powersweep compare before after --columns energy_total_j          two experiments
  powersweep compare log:policy=easy log:policy=bsld --table jobs --columns wait_s   job by job, by weeks";
pub const SENSITIVITY: &str = "Examples:
  powersweep sensitivity my-sweep --of energy_total_j,bsld_mean
  powersweep sensitivity my-sweep --of bsld_mean --by wq_threshold --format latex -o shares.tex";
pub const BEST: &str = "Examples:
  powersweep best my-sweep --minimise energy_total_j --subject-to \"bsld_mean <= 200\"
  powersweep best my-sweep --minimise energy_total_j --minimise bsld_mean      the Pareto front";
pub const FIND: &str = "Examples:
  powersweep find sweep.toml --over size_factor=1..2 --minimise size_factor --subject-to \"bsld_mean <= 200\"
  powersweep find sweep.toml --over bsld_threshold=1..5:0.25 --minimise energy_total_j --subject-to \"bsld_mean <= 200\"
  powersweep find sweep.toml --over size_factor=1..2 --minimise size_factor --subject-to \"bsld_mean <= 200\" --access client.json";
pub const VERIFY: &str = "Examples:
  powersweep verify my-sweep                                        100 tasks, chosen at random
  powersweep verify my-sweep --tasks 1000 --sample-seed 7           the same tasks on each machine
  powersweep verify study.zip                                       an artifact that came by mail: files, rows, claims";
pub const SQL: &str = "Examples:
  powersweep sql my-sweep                                           DuckDB's prompt
  powersweep sql my-sweep \"SELECT wq_threshold, avg(wait_s_mean) FROM tasks GROUP BY ALL\"";
pub const EXPORT: &str = "Examples:
  powersweep export my-sweep --output my-sweep-2026                 one file for each table, in a new folder
  powersweep export my-sweep --table tasks --output tasks.parquet   one table
  powersweep export my-sweep --access client.json --output my-sweep   from a coordinator on another machine";
pub const REPORT: &str = "Examples:
  powersweep report my-sweep -o report.html                        one file, for mails and appendices
  powersweep report my-sweep -o report.html --x wait_s_mean --by bsld_threshold
  powersweep report my-sweep -o report.html --access client.json   of a coordinator on another machine";
pub const REPRODUCE: &str = "Examples:
  powersweep reproduce etinski2010 -o etinski          one paper: etinski/report.html, and a file for each figure and table
  powersweep reproduce ./paper.toml -o drawn           a paper of your own: claims and figures in one file
  powersweep reproduce -o papers --traces ~/traces     all papers; do2013, aldaoud2011 and sc15 take minutes";
pub const PLOT: &str = "Examples:
  powersweep plot etinski2010 --preset figure3 -o energy.pdf       a figure of a paper; --presets lists them
  powersweep plot my-sweep --figure bars --x wq_threshold --y energy_total_j -o energy.pdf
  powersweep plot my-sweep --figure pareto --x energy_total_j --y bsld_tau600s_mean --colour bsld_threshold -o front.svg
  powersweep plot my-sweep --figure cdf --x wait_s --colour wq_threshold --log x -o waits.png    of the table jobs
  powersweep plot my-sweep --figure series --y power_w --cap power_cap_w --where seed=1 -o power.pdf --watch";
pub const TIMELINE: &str = "Examples:
  powersweep timeline my-sweep -o trace.json.gz                    for https://ui.perfetto.dev
  powersweep timeline my-sweep -o trace.json --access client.json  of a coordinator on another machine";
pub const EVENTS: &str = "Examples:
  powersweep events my-sweep                  what the tables have: finished tasks, failed attempts, parts
  powersweep events my-sweep --follow         the same, then every event until the experiment ends
  powersweep events my-sweep -f --since 10m   without the events of more than ten minutes ago";
pub const ARTIFACT: &str = "Examples:
  powersweep artifact my-sweep --licence CC-BY-4.0 -o study.zip              rows, manifest, digests
  powersweep artifact --paper paper.toml --with-logs \"CC0-1.0\" -o study.zip  with claims, figures and logs
  powersweep verify study.zip --figures drawn-again                          what a reviewer runs";
pub const ADOPT: &str = "Example:
  powersweep adopt sweep.toml --data ./results/data && powersweep run sweep.toml";
pub const SCHEMA: &str = "Example:
  powersweep schema > powersweep.schema.json";
pub const POLICIES: &str = "Examples:
  powersweep policies              every component, one line each
  powersweep policies queue_order  the components of a role
  powersweep policies bsld         one component: what it reads and guarantees, its cost, its parameters";
pub const COLUMNS: &str = "Examples:
  powersweep columns tasks          the columns of a task's row
  powersweep columns --json         every table, as JSON";
pub const TRACE_INFO: &str = "Examples:
  powersweep trace info ./my-log.swf.gz                        a file
  powersweep trace info KTH-SP2-1996-2.1-cln --traces ~/logs   a log by name";
pub const IMPORT: &str = "Examples:
  powersweep import slurm dump.txt                                 only show the ledger; times with an offset, or Unix times
  powersweep import slurm dump.txt --timezone Europe/Berlin -o jobs.swf.gz  local times
  powersweep import slurm dump.txt --timezone UTC --procs nodes --json      a job's nodes are its processors";
pub const CALIBRATE: &str = "Examples:
  powersweep calibrate ./jobs.swf --meter meter.csv --meter-timezone UTC    fit idle and busy watts, and the losses
  powersweep calibrate ./jobs.swf --meter meter.csv --idle-w 80 --steps compared.csv    keep a value; write each step";
pub const CONFIG: &str = "Example:
  powersweep config show --origin  the default of each option, and the file that it comes from";
pub const COMPLETIONS: &str = "Examples:
  powersweep completions bash > ~/.local/share/bash-completion/completions/powersweep
  powersweep completions zsh > ~/.zfunc/_powersweep
  powersweep completions fish > ~/.config/fish/completions/powersweep.fish";
pub const MAN: &str = "Examples:
  powersweep man                               the page of the program
  powersweep man --output ~/.local/share/man/man1  a page for each command";
pub const HELP: &str = "Examples:
  powersweep help                 all commands, and all pages of the guide
  powersweep help figures         a page of the guide
  powersweep help access export   the options of a command";
pub const CONFORMANCE: &str = "Examples:
  powersweep conformance --module easy.wasm                              a module
  powersweep conformance --formula \"estimate_s * procs\"                  a formula
  powersweep conformance --module easy.wasm --log KTH-SP2-1996-2.1-cln   on a log, too";
pub const DOCTOR: &str = "Examples:
  powersweep doctor --data /shared/data         before a coordinator starts there
  powersweep doctor --access worker.json        from a machine of a worker";
pub const HEALTH: &str = "Example:
  powersweep health --data /data && echo healthy";
pub const ACCESS: &str = "Examples:
  powersweep access show                                   where the access files are
  powersweep access export --worker --output worker.json   for a worker on another machine
  powersweep access add ada --output ada.json              for another user, under a name";
pub const ACCESS_SHOW: &str = "Example:
  powersweep access show --format json";
pub const ACCESS_ROTATE: &str = "Examples:
  powersweep access rotate            new tokens; the former ones stay valid for 10 minutes
  powersweep access rotate --grace 0s  the former ones end at once";
pub const ACCESS_EXPORT: &str = "Examples:
  powersweep access export --worker --output worker.json   copy this file to the other machine
  powersweep access export --worker --join                 one line, to paste into `powersweep worker --access -`
  powersweep access export --name ada --output ada.json    the file of `access add` again, with the present addresses";
pub const ACCESS_ADD: &str = "Examples:
  powersweep access add ada --output ada.json   a file that only Ada should get
  powersweep access add ada --join              one line, to paste into `powersweep status --access -`";
pub const ACCESS_REVOKE: &str = "Example:
  powersweep access revoke ada   Ada's token ends within a second; the others' stay";

pub const LAUNCH: &str = "Examples:
  powersweep launch slurm --time 4:00:00 --cpus 32 --max-nodes 16   workers on up to 16 nodes while tasks wait
  powersweep launch status                                          allocations, and why there are no more";
pub const LAUNCH_SLURM: &str = "Examples:
  powersweep launch slurm --site site.toml --max-nodes 16            with the options of a site file
  powersweep launch slurm --time 4:00:00 --cpus 32 --dry-run         show the script, and let Slurm test it
  powersweep launch slurm --time 4:00:00 --cpus 32 --check           can a node reach the coordinator?
  powersweep launch slurm --time 4:00:00 --cpus 32 --until-idle 10m  end when the sweep has ended
  powersweep launch slurm --coordinator --time 12:00:00 --cpus 32    the coordinator in a job, too";
pub const LAUNCH_PBS: &str = "Examples:
  powersweep launch pbs --site site.toml --max-nodes 16              with the options of a site file
  powersweep launch pbs --queue workq --time 4:00:00 --cpus 32 --dry-run   show the script
  powersweep launch pbs --queue workq --time 4:00:00 --cpus 32 --check     can a node reach the coordinator?";
pub const LAUNCH_STATUS: &str = "Examples:
  powersweep launch status                 the launcher of ./results/data
  powersweep launch status --json          as JSON";
pub const LAUNCH_LOG: &str = "Examples:
  powersweep launch log          the kept allocations
  powersweep launch log 4711_3   the script and the output of one";
pub const LAUNCH_STOP: &str = "Examples:
  powersweep launch stop             end the launcher, cancel what waits in the queue
  powersweep launch stop --workers   ask the running workers to end, too";
pub const SITE_INIT: &str = "Examples:
  powersweep site init --output site.toml       for the default partition
  powersweep site init --partition long         for another one, on standard output";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::args::Cli;

    /// The words of a line; a quoted one may have blanks.
    fn words(line: &str) -> Vec<&str> {
        let parts = line.split('"').enumerate();
        parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
    }

    fn check(command: &clap::Command, path: &str) {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = after.lines().filter_map(|line| line.strip_prefix("  powersweep ")).collect();
        assert!(!examples.is_empty(), "{path} has no example");
        for example in examples {
            let example = example.split(['>', '&']).next().unwrap_or_default();
            let line = ["powersweep"].into_iter().chain(words(example.split("  ").next().unwrap_or_default()));
            let parsed = Cli::try_parse_from(line);
            assert!(parsed.is_ok(), "example of {path}: {example}: {}", parsed.expect_err("it was refused"));
        }
        for inner in command.get_subcommands() {
            check(inner, &format!("{path} {}", inner.get_name()));
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        check(&Cli::command(), "powersweep");
    }
}

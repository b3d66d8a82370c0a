//! Examples at the end of each command's `--help`: a command, at least two spaces, its effect.

pub const RUN: &str = "Examples:
  powersweep run                               the shipped quickstart, synthetic jobs
  powersweep run sweep.toml --data /big/disk   your own manifest, results elsewhere
  powersweep run etinski2010 --traces ~/logs   a paper's sweep, with the folder of the logs";
pub const CHECK: &str = "Examples:
  powersweep check --list                              the papers, with their numbers of claims
  powersweep check etinski2010 --traces ~/logs         every published number beside ours
  powersweep check etinski2010 --demanded --format json  demanded claims, for programs";
pub const PLAN: &str = "Examples:
  powersweep plan sweep.toml             axes, and the number of done tasks
  powersweep plan sweep.toml --index 12  one task: its parameters, and why it would or would not run";
pub const SIMULATE: &str = "Examples:
  powersweep simulate -s gear_rule=bsld -s bsld_threshold=2        synthetic jobs, other components
  powersweep simulate --log KTH-SP2-1996-2.1-cln --traces ~/logs   a real log
  powersweep simulate sweep.toml --index 12 --jobs jobs.csv        task 12 of a sweep, with one row per job
  powersweep simulate -s capacity_rule=two-level -s two_level_procs=64 --series series.csv  active procs over time";
pub const LP: &str = "Examples:
  powersweep lp aldaoud2011                 lambda*, theta*, delta* and loads of every system of a paper
  powersweep lp sweep.toml --format json    your own systems, for programs";
pub const SERVE: &str = "Examples:
  powersweep serve                                               for workers on this machine
  powersweep serve --listen 0.0.0.0:7450 --token-file token --tls-cert cert.pem --tls-key key.pem";
pub const WORKER: &str = "Examples:
  powersweep worker                                              for a coordinator on this machine
  powersweep worker --coordinator https://head:7450 --token-file token --ca cert.pem --slots 8
  powersweep worker --time-limit 3:55:00 --idle-limit 10m        in a batch job of four hours
  powersweep worker --task-deadline 1h --task-max-memory 4GiB    give up longer or larger tasks";
pub const SUBMIT: &str = "Examples:
  powersweep submit sweep.toml --dry-run  only show the tasks that would run
  powersweep submit sweep.toml --wait     submit it and wait for its end
  powersweep submit sweep.toml --priority 5  before the others
  powersweep submit sweep.toml --restart  after a change of versions: old rows go to NAME@N";
pub const STATUS: &str = "Examples:
  powersweep status                                     the state in ./results/data, or its coordinator
  powersweep status my-sweep --json                     one experiment, for programs
  powersweep status --watch                             until interrupted
  powersweep status --coordinator http://head:7450      a coordinator elsewhere";
pub const PAUSE: &str = "Examples:
  powersweep pause my-sweep                                    of the coordinator that serves ./results/data
  powersweep pause my-sweep --coordinator http://head:7450     of a coordinator elsewhere";
pub const RESUME: &str = "Example:
  powersweep resume my-sweep";
pub const CANCEL: &str = "Example:
  powersweep cancel my-sweep";
pub const RETRY: &str = "Examples:
  powersweep retry my-sweep                         every task that failed for good
  powersweep retry my-sweep --index 12 --index 40   two of them
  powersweep retry my-sweep --kind memory           tasks that exceeded memory, after starting larger workers";
pub const PRIORITY: &str = "Examples:
  powersweep priority my-sweep 10   before experiments of lower priority
  powersweep priority my-sweep -1   only when no other experiment has tasks";
pub const FLUSH: &str = "Example:
  powersweep flush my-sweep   before reading the rows of a running sweep";
pub const DELETE: &str = "Examples:
  powersweep delete my-sweep              its state; the rows stay
  powersweep delete my-sweep --data-too   also the rows";
pub const RESULTS: &str = "Examples:
  powersweep results my-sweep                                       the first tasks, with the columns that vary
  powersweep results my-sweep --columns task_index,policy,wait_s_mean --format csv
  powersweep results my-sweep --table failures                      every failed attempt
  powersweep results my-sweep --format parquet --output tasks.parquet  all rows in one file";
pub const EXPORT: &str = "Examples:
  powersweep export my-sweep --output my-sweep-2026                 one file per table, in a new folder
  powersweep export my-sweep --table tasks --output tasks.parquet   one table";
pub const ADOPT: &str = "Example:
  powersweep adopt sweep.toml --data ./results/data && powersweep run sweep.toml";
pub const SCHEMA: &str = "Example:
  powersweep schema > powersweep.schema.json";
pub const POLICIES: &str = "Examples:
  powersweep policies       every component with its parameters
  powersweep policies bsld  one component";
pub const COLUMNS: &str = "Examples:
  powersweep columns tasks          the columns of a task's row
  powersweep columns --format json  every table, for programs";
pub const TRACE_INFO: &str = "Examples:
  powersweep trace info ./my-log.swf.gz                        a file
  powersweep trace info KTH-SP2-1996-2.1-cln --traces ~/logs   a log by name";
pub const HEALTH: &str = "Example:
  powersweep health --coordinator http://127.0.0.1:7450 && echo well";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::args::Cli;

    fn check(command: &clap::Command, path: &str) {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = after.lines().filter_map(|line| line.strip_prefix("  powersweep ")).collect();
        assert!(!examples.is_empty(), "{path} has no example");
        for example in examples {
            let example = example.split(['>', '&']).next().unwrap_or_default();
            let words: Vec<&str> = example.split("  ").next().unwrap_or_default().split(' ').collect();
            let line = ["powersweep"].into_iter().chain(words.into_iter().filter(|word| !word.is_empty()));
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

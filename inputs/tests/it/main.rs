//! Tests of the inputs of tasks: files of logs, job logs, signals.

// Tests that need files are ignored where the variable with their folder is not set, which `test_with` asks the compiler's
// environment. It does not tell Cargo: these do, so that the tests are compiled again when a variable changes.
const _: [Option<&str>; 3] =
    [option_env!("POWERSWEEP_TRACES"), option_env!("POWERSWEEP_JOBLOGS"), option_env!("POWERSWEEP_SIGNALS")];

mod joblogs;
mod library;
mod signals;

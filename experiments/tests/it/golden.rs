//! Ids of released specs never change.

use powersweep_experiments::manifests;

use crate::sweep;

/// Some tasks of the built-in manifests with their ids. If this fails, an id changed: the rows of every user would be
/// computed again. Only a raised version of the kernel or of a component may do that, and then only for its tasks.
#[test]
fn task_ids_equal_the_golden_file() {
    let mut lines = String::new();
    for (name, text) in manifests::builtin() {
        let sweep = sweep(text);
        // Every seventh, and fewer of a sweep with many.
        for index in (0..sweep.index_count()).step_by(7.max(sweep.index_count() as usize / 2000)) {
            if let Some(task) = sweep.task(index) {
                lines.push_str(&format!(
                    "{name} {} {} {} {index} {}\n",
                    task.workload, task.platform, task.policy, task.task_id
                ));
            }
        }
    }
    let here = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let path = here.join("tests/golden/task_ids.txt");
    if std::env::var_os("POWERSWEEP_BLESS").is_some() {
        std::fs::write(&path, &lines).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(path).expect("the golden file is there");
    assert_eq!(lines, golden);
}

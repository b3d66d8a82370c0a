//! The logs of `POWERSWEEP_TRACES`, whose digests are published beside them.
use std::path::PathBuf;

use powersweep_engine::workload::swf;
use powersweep_inputs::library::Library;

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn digests_of_the_real_logs_equal_the_published_ones() {
    let folder = PathBuf::from(std::env::var_os("POWERSWEEP_TRACES").expect("it was set for the compiler"));
    let readme = std::fs::read_to_string(folder.join("README.md")).expect("the folder has a README with digests");
    let library = Library::new(vec![folder], None);
    let mut checked = 0;
    for line in readme.lines() {
        if let Some((digest, file)) = line.split_once("  ").filter(|(d, f)| d.len() == 64 && f.ends_with(".swf")) {
            let log = library.load(&swf::FORMAT, file.trim_end_matches(".swf"), None).expect(file);
            assert_eq!(log.digest.to_string(), digest, "{file}");
            checked += 1;
        }
    }
    assert_eq!(checked, 20);
}

//! The contents of an artifact that may be a stranger's.

use super::*;

#[test]
fn a_list_of_contents_names_only_files_of_the_artifact() {
    let study = |version: u32, name: &str| {
        let experiments = vec![StudiedExperiment { name: name.to_owned(), ..StudiedExperiment::default() }];
        serde_json::to_string(&Study { version, experiments, ..Study::default() }).expect("JSON")
    };
    let has = |path: &str| ["inputs/a.toml", "rows/a/tasks/tasks.parquet"].contains(&path);
    assert!(Study::parse(&study(1, "a"), has).is_ok());
    let refused = |text: &str| Study::parse(text, has).expect_err("it is refused").message;
    assert!(refused(&study(1, "../a")).contains("there is no inputs/../a.toml"));
    assert!(refused(&study(2, "a")).contains("version 2"));
    assert!(refused("{}").contains("study.json"));
}

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

#[test]
fn scripts_draw_figures_again_only_if_there_are_some() {
    let study = |files: &[&str]| {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        let figures = vec![StudiedFigure { files, ..StudiedFigure::default() }];
        let paper = Some(StudiedPaper { figures, ..StudiedPaper::default() });
        Study { paper, has_program: true, ..Study::default() }
    };
    for (of, draws) in [(study(&["figures/a.svg"]), true), (study(&[]), false), (Study::default(), false)] {
        assert_eq!(scripts::reproduce(&of).contains("--figures"), draws);
        assert_eq!(scripts::container(&of).contains("--figures"), draws);
    }
}

#[test]
fn the_description_has_the_steps_of_each_experiment_and_only_what_the_study_has() {
    let experiment = |name: &str, failed: u64| StudiedExperiment {
        name: name.to_owned(),
        tasks: 50,
        done: 50 - failed,
        failed,
        ..StudiedExperiment::default()
    };
    let study = Study { experiments: vec![experiment("one", 2), experiment("two", 0)], ..Study::default() };
    let text = describe::latex(&study, None, 1_000);
    for part in [
        "{powersweep run inputs/\\allowbreak{}one.toml --traces inputs}, with a new folder of data; 2 tasks fail again",
        "{powersweep run inputs/\\allowbreak{}two.toml --traces inputs}, with a new folder of data.\n",
        "up to 100 tasks of each experiment",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("the figures") && !text.contains("study.zip"), "{text}");
    assert!(!scripts::readme(&study, None).contains("claims") && !scripts::reproduce(&study).contains("claims"));
}

/// The builder of Docker before version 23 refuses `COPY --chmod`; the ZIP has the mode of the program.
#[test]
fn the_recipe_of_an_image_needs_no_new_builder() {
    let recipe = scripts::container(&Study { has_program: true, ..Study::default() });
    assert!(recipe.contains("\nCOPY bin/powersweep /powersweep\n"), "{recipe}");
}

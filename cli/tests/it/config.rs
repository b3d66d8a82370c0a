//! Configuration files, and the order of flags, variables and files.

use serde_json::Value as Json;

use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

/// Value and origin of a key in `config show --json`.
fn shown(shown: &Json, key: &str) -> (String, String) {
    let settings = shown["settings"].as_array().expect("a list");
    let setting = settings.iter().find(|setting| setting["key"] == key).expect("every key is shown");
    let text = |name: &str| setting[name].as_str().unwrap_or_default().to_owned();
    (text("value"), text("origin"))
}

fn pair(value: &str, origin: &str) -> (String, String) {
    (value.to_owned(), origin.to_owned())
}

#[test]
fn flags_come_before_variables_before_files() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    let user = sandbox.home().join(".config/powersweep");
    std::fs::create_dir_all(&user).expect("it can be made");
    std::fs::write(user.join("config.toml"), "slots = 3\ndata = \"of-user\"\n").expect("it can be written");
    let config =
        |variables: &[(&str, &str)]| sandbox.run_with(&["config", "show", "--json"], variables).exits(0).json();
    let user_file = user.join("config.toml").display().to_string();
    let user_data = user.join("of-user").display().to_string();
    assert_eq!(shown(&config(&[]), "data"), (user_data, format!("{user_file}:2")));

    sandbox.write("powersweep.toml", "data = \"of-folder\"\n");
    let found = config(&[]);
    assert_eq!(found["version"], 1);
    assert_eq!(shown(&found, "data"), pair("of-folder", "powersweep.toml:1"));
    assert_eq!(shown(&found, "slots"), pair("3", &format!("{user_file}:1")));
    assert_eq!(shown(&found, "workload_memory"), pair("1GiB", "default"));
    assert_eq!(shown(&found, "coordinator"), pair("", "default"));
    let cache = sandbox.home().join(".cache/powersweep").display().to_string();
    assert_eq!(shown(&found, "cache"), pair(&cache, "default"));
    let data = [("POWERSWEEP_DATA", "of-variable"), ("XDG_CACHE_HOME", "/xdg"), ("NO_COLOR", "1")];
    assert_eq!(shown(&config(&data), "data"), pair("of-variable", "environment POWERSWEEP_DATA"));
    assert_eq!(shown(&config(&data), "cache"), pair("/xdg/powersweep", "default"));
    assert_eq!(shown(&config(&data), "color"), pair("never", "environment NO_COLOR"));
    let text = sandbox.run(&["config", "show", "--origin"]).exits(0);
    text.prints(&["powersweep.toml:1", &user_file, "/etc/powersweep/config.toml (not there)"]);

    // The options have these defaults.
    let run = ["run", "sweep.toml", "--quiet", "--show", "0"];
    sandbox.run(&run).exits(0);
    sandbox.run_with(&run, &data).exits(0);
    sandbox.run_with(&[&run[..], &["--data", "of-flag"]].concat(), &data).exits(0);
    for folder in ["of-folder", "of-variable", "of-flag"] {
        assert!(sandbox.path(folder).join("sweep/tasks").exists(), "{folder}");
    }
    sandbox.run(&["status", "sweep"]).exits(0).prints(&["of-folder", "finished"]);
    assert!(!sandbox.path("results").exists());
}

#[test]
fn the_home_folder_may_be_a_tilde_and_an_empty_variable_is_not_set() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    std::fs::create_dir_all(sandbox.home().join("logs")).expect("it can be made");
    std::fs::write(sandbox.home().join("logs/tiny.swf"), crate::sweeps::TINY_LOG).expect("it can be written");
    sandbox.write("powersweep.toml", "data = \"~/of-file\"\n");
    let run = ["run", "sweep.toml", "--quiet", "--show", "0"];
    sandbox.run(&run).exits(0);
    sandbox.run_with(&run, &[("POWERSWEEP_DATA", "~/of-variable")]).exits(0);
    sandbox.run(&[&run[..], &["--data=~/of-flag"]].concat()).exits(0);
    for folder in ["of-file", "of-variable", "of-flag"] {
        assert!(sandbox.home().join(folder).join("sweep/tasks").exists(), "{folder}");
    }
    let info = ["trace", "info", "tiny"];
    sandbox.run_with(&info, &[("POWERSWEEP_TRACES", "nowhere:~/logs")]).exits(0).prints(&["records_count"]);
    let empty = [("POWERSWEEP_TRACES", ""), ("POWERSWEEP_SLOTS", ""), ("POWERSWEEP_COORDINATOR", "")];
    sandbox.run_with(&run, &empty).exits(0);
    sandbox.run_with(&run, &[("POWERSWEEP_SLOTS", "x")]).exits(2).says(&["value of the variable POWERSWEEP_SLOTS"]);
    for empty in [&["--x", ""][..], &["--by="]] {
        sandbox.run(&[&["report", "sweep"], empty].concat()).exits(2).says(&["give one, or leave it out"]);
    }
}

#[test]
fn the_folder_of_logs_may_come_from_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("logs/tiny.swf", crate::sweeps::TINY_LOG);
    sandbox.write("powersweep.toml", "traces = [\"nowhere\", \"logs\"]\n");
    sandbox.run(&["trace", "info", "tiny"]).exits(0).prints(&["records_count"]);
}

#[test]
fn a_wrong_configuration_shows_every_problem_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.write("powersweep.toml", "slot = 2\ncache_size = \"big\"\nworkloads = 1\n");
    let ended = sandbox.run(&["plan"]).exits(2);
    ended.says(&[
        "3 problems in powersweep.toml",
        "powersweep.toml:1:1",
        "did you mean `slots`?",
        "powersweep.toml:2:14",
        "expected a number of bytes such as \"20GiB\"",
        "this is a key of manifests",
    ]);
    sandbox.run(&["--help"]).exits(0).prints(&["Start here"]);
}

/// In a folder such as the temporary one, another user could choose the coordinator that gets a user's requests.
#[test]
fn the_file_of_another_user_is_ignored() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("powersweep.toml", "data = \"of-stranger\"\n");
    let mode = |mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("it can be changed");
    };
    let data = || shown(&sandbox.run(&["config", "show", "--json"]).exits(0).json(), "data").0;
    mode(0o666);
    let ended = sandbox.run(&["config", "show"]).exits(0);
    ended.says(&["powersweep.toml is ignored: another user could have written it"]);
    assert_eq!(data(), "./results/data");
    mode(0o644);
    assert_eq!(data(), "of-stranger");
    if std::os::unix::fs::chown(&file, Some(12_345), None).is_err() {
        println!("skipped: only root can give a file to another user");
        return;
    }
    assert_eq!(data(), "./results/data");
}

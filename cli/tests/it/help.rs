//! `powersweep help`: the help of commands, and the pages of the guide.

use crate::sandbox::Sandbox;
use crate::terminal::on_a_terminal;

#[test]
fn commands_keep_their_help() {
    let sandbox = Sandbox::new();
    let help = |args: &[&str]| sandbox.run(args).exits(0).stdout;
    assert_eq!(help(&["help", "run"]), help(&["run", "--help"]));
    assert_eq!(help(&["help", "access", "export"]), help(&["access", "export", "--help"]));
    // A page has the file name of this command.
    let results = help(&["help", "results"]);
    assert_eq!(results.trim_end(), help(&["results", "--help"]) + "\nGuide: powersweep help tables");
    // A variable makes no option required.
    let lacking = sandbox.run_with(&["compare", "a"], &[("POWERSWEEP_TRACES", "logs")]).exits(2);
    lacking.says(&["Usage: powersweep compare [OPTIONS] <A> <B>"]);
}

#[test]
fn the_list_has_commands_and_topics() {
    let listed = Sandbox::new().run(&["help"]).exits(0).stdout;
    let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    for start in [&["run"][..], &["prepare-upgrade"], &["Tutorials", "tutorial-quickstart"], &["figures", "bars,"]] {
        assert!(words.iter().any(|words| words.starts_with(start)), "{start:?} in\n{listed}");
    }
}

#[test]
fn a_page_is_plain_text_where_it_is_on_no_terminal() {
    let sandbox = Sandbox::new();
    let page = sandbox.run_with(&["help", "errors"], &[("PAGER", "false")]).exits(0).stdout;
    assert!(page.starts_with("# Errors\n\nAn error message says what failed"), "{page}");
    assert!(page.contains("\n  powersweep retry my-sweep\n"), "{page}");
    assert!(page.contains("\nSee also: powersweep help ") && page.contains("| tables"), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains("]("), "{page}");
    // Two words are one name.
    assert_eq!(sandbox.run(&["help", "sweep", "life"]).exits(0).stdout, sandbox.run(&["help", "sweep-life"]).stdout);
}

#[test]
fn an_unknown_topic_gets_the_nearest_ones() {
    let sandbox = Sandbox::new();
    let unknown = |words: &[&str], said: &str| drop(sandbox.run(&[&["help"], words].concat()).exits(2).says(&[said]));
    unknown(&["figurs"], "unknown command or topic `figurs`; did you mean `figures`?");
    unknown(&["leese"], "did you mean `leases`");
    unknown(&["access", "exprt"], "unknown command or topic `access exprt`");
    unknown(&["zzzzz"], "unknown command or topic `zzzzz`; `powersweep help` lists all of them");
}

#[test]
fn a_terminal_gets_bold_headings_in_a_pager() {
    let sandbox = Sandbox::new();
    sandbox.write_program("shows", "#!/bin/sh\necho \"shown with LESS=$LESS\"\ncat\n");
    let shows = sandbox.path("bin/shows");
    let pager = |pager: &str| Some(on_a_terminal(&sandbox, "help errors", &[("PAGER", pager)])?.exits(0).stdout);
    let Some(shown) = pager(shows.to_str().expect("the path is text")) else { return };
    assert!(shown.contains("shown with LESS=FRX"), "{shown}");
    assert!(shown.contains("\u{1b}[1mErrors\u{1b}[0m"), "{shown}");
    for none in ["", "no-such-pager", "true | false"] {
        let shown = pager(none).expect("there is a terminal");
        assert_eq!(shown.contains("\u{1b}[1mErrors"), none != "true | false", "{none:?}: {shown}");
    }
}

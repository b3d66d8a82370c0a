//! The pages of the guide, in the binary: compute nodes have no browser and often no network.
//!
//! `docs/README.md` is the table of contents: its sections, the order of its pages and what each page is about.

mod page;

pub use page::rendered;

/// A page of the guide.
#[derive(Debug)]
pub struct Topic {
    /// Its name after `powersweep help`. No command has it.
    pub name: &'static str,
    /// Its path below `docs/`.
    pub path: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

/// A section of the table of contents.
#[derive(Debug)]
pub struct Section {
    pub title: &'static str,
    /// The topics, each with what its page is about.
    pub topics: Vec<(&'static Topic, &'static str)>,
}

macro_rules! topics {
    ($($name:literal $path:literal)+) => {
        &[$(Topic { name: $name, path: $path, text: include_str!(concat!("../../../docs/", $path)) }),+]
    };
}

/// Every page, except for those that a command prints (commands, columns) and the decisions. A page that has the name of a
/// command has another name here, because `powersweep help COMMAND` shows the command's options.
pub const TOPICS: &[Topic] = topics![
    "artifacts" "artifact.md"
    "ask-and-tell" "ask-and-tell.md"
    "batch-systems" "batch-systems.md"
    "browser" "dashboard.md"
    "cheat-sheet" "cheat-sheet.md"
    "choosing-a-policy" "choosing-a-policy.md"
    "comparison" "comparison.md"
    "configuration" "configuration.md"
    "designs" "designs.md"
    "environment" "reference/environment.md"
    "errors" "errors.md"
    "exact-rules" "exact-rules.md"
    "exit-codes" "reference/exit-codes.md"
    "fair-share" "concepts/fair-share.md"
    "figures" "figures.md"
    "files" "reference/files.md"
    "five-minutes" "five-minutes.md"
    "glossary" "glossary.md"
    "identity" "concepts/identity.md"
    "indices" "sensitivity.md"
    "install" "install.md"
    "intervals" "intervals.md"
    "kubernetes" "kubernetes.md"
    "leases" "concepts/leases.md"
    "library" "library.md"
    "limits" "limits.md"
    "logs" "logs.md"
    "machines" "machines.md"
    "manifest" "reference/manifest.md"
    "measured-power" "measured-power.md"
    "metrics" "metrics.md"
    "modules" "modules.md"
    "other-tools" "other-tools.md"
    "papers" "papers.md"
    "partitions" "partitions.md"
    "policy-components" "reference/policies.md"
    "power-saving" "power-saving.md"
    "prediction" "prediction.md"
    "provenance" "concepts/provenance.md"
    "publish" "publish.md"
    "published-tables" "published-tables.md"
    "python" "python.md"
    "queries" "queries.md"
    "sc15" "sc15.md"
    "scale" "scale.md"
    "search" "find.md"
    "security" "concepts/security.md"
    "signals" "signals.md"
    "sweep-life" "sweep-life.md"
    "tables" "results.md"
    "tutorial-carbon" "tutorials/carbon.md"
    "tutorial-cluster" "tutorials/cluster.md"
    "tutorial-components" "tutorials/components.md"
    "tutorial-demand-response" "tutorials/demand-response.md"
    "tutorial-night-cap" "tutorials/night-cap.md"
    "tutorial-paper" "tutorials/paper.md"
    "tutorial-planner" "tutorials/planner.md"
    "tutorial-prediction" "tutorials/prediction.md"
    "tutorial-policy" "tutorials/policy.md"
    "tutorial-quickstart" "tutorials/quickstart.md"
];

const CONTENTS: &str = include_str!("../../../docs/README.md");

/// The topic of this name.
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// The topic of the page at this path below `docs/`.
fn at(path: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.path == path)
}

/// The table of contents, with the sections that have topics.
pub fn contents() -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in CONTENTS.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title, topics: Vec::new() });
        } else if let (Some((path, about)), Some(section)) = (item(line), sections.last_mut()) {
            section.topics.extend(at(path).map(|topic| (topic, about)));
        }
    }
    sections.retain(|section| !section.topics.is_empty());
    sections
}

/// Path and subject of a line `- [Title](path): subject`.
fn item(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("- [")?.split_once("](")?.1.split_once("): ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn the_table_of_contents_has_every_topic_once() {
        let listed: Vec<&str> =
            contents().into_iter().flat_map(|section| section.topics).map(|(topic, _)| topic.name).collect();
        assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len(), "{listed:?}");
        let missing: Vec<&Topic> = TOPICS.iter().filter(|topic| !listed.contains(&topic.name)).collect();
        assert!(missing.is_empty(), "docs/README.md does not list {missing:#?}");
    }

    #[test]
    fn every_page_is_a_topic_unless_a_command_prints_it() {
        let printed = ["decisions/README.md", "reference/columns.md", "reference/commands.md"];
        let paths = CONTENTS.lines().filter_map(item).map(|(path, _)| path);
        let missing: Vec<&str> = paths.filter(|path| !printed.contains(path) && at(path).is_none()).collect();
        assert!(missing.is_empty(), "these pages need a line in TOPICS: {missing:?}");
    }

    #[test]
    fn no_command_hides_a_topic() {
        let command = Cli::command();
        let hidden: Vec<&str> =
            TOPICS.iter().map(|topic| topic.name).filter(|name| command.find_subcommand(name).is_some()).collect();
        assert!(hidden.is_empty(), "{hidden:?}");
    }
}

//! Addresses of pages: what they ask for, and links to them.

use std::fmt::Display;

use url::form_urlencoded;

/// Decoded names and values of a query or a form.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(text: &[u8]) -> Query {
        Query(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The first value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// A relative link.
pub(crate) fn link(page: &str, query: &[(&str, &str)]) -> String {
    let query = query.iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    if query.is_empty() { page.to_owned() } else { format!("{page}?{query}") }
}

/// A link to the rows of an experiment that satisfy a condition.
pub(crate) fn rows_link(name: &str, only: &str) -> String {
    link("results", &[("name", name), ("where", only)])
}

/// A link to the row of a task.
pub(crate) fn task_link(name: &str, index: impl Display) -> String {
    rows_link(name, &format!("task_index={index}"))
}

//! Lists of experiments and workers: searched by a part of a name, and sorted.

use maud::{Markup, html};

use crate::address::{Query, link};

/// Search and order of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ListQuery {
    /// A part of the text of an entry, in any case of letters; empty for all entries.
    find: String,
    /// The word of an order; empty for the coordinator's.
    sort: String,
}

/// An order of the entries of a list: its word in addresses, its words for people, and the number by which entries
/// ascend. Entries without a number are the last; without a function, entries are sorted by their texts.
pub(super) type ListOrder<T> = (&'static str, &'static str, Option<fn(&T) -> Option<f64>>);

impl ListQuery {
    pub(super) fn of(query: &Query) -> ListQuery {
        let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
        ListQuery { find: text("find"), sort: text("sort") }
    }

    pub(super) fn query(&self) -> [(&'static str, String); 2] {
        [("find", self.find.clone()), ("sort", self.sort.clone())]
    }

    /// The chosen entries in the chosen order. Equal entries keep their order.
    pub(super) fn chosen<'a, T>(
        &self,
        all: &'a [T],
        orders: &[ListOrder<T>],
        text: impl Fn(&T) -> String,
    ) -> Vec<&'a T> {
        let wanted = self.find.to_lowercase();
        let mut found: Vec<&T> = all.iter().filter(|entry| text(entry).to_lowercase().contains(&wanted)).collect();
        match orders.iter().find(|(word, ..)| *word == self.sort) {
            Some((.., Some(number))) => {
                let key = |entry: &T| number(entry).unwrap_or(f64::INFINITY);
                found.sort_by(|one, other| key(one).total_cmp(&key(other)));
            }
            Some((.., None)) => found.sort_by_cached_key(|entry| text(entry)),
            None => {}
        }
        found
    }

    /// The form of a list, unless there is one entry only. It stays unchanged while the list changes.
    pub(super) fn form<T>(&self, page: &str, entries: usize, orders: &[ListOrder<T>]) -> Markup {
        html! {
            @if entries > 1 {
                form.choose id=(format!("list-{page}")) action=(page) hx-morph-skip {
                    label { "Find " input.wide type="search" name="find" value=(self.find); }
                    label { "Order " select name="sort" {
                        option value="" { "usual" }
                        @for (word, words, _) in orders { option value=(word) selected[*word == self.sort] { (words) } }
                    } }
                    button { "Show" }
                }
            }
        }
    }

    /// Says that no entry is shown, if so.
    pub(super) fn none(&self, page: &str, shown: usize) -> Markup {
        html! { @if shown == 0 { p.empty { "No entry has “" (self.find) "”. " a href=(link(page, &[])) { "Show all" } } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_searched_and_sorted() {
        let all = [("Alpha", Some(2.0)), ("beta", None), ("alphabet", Some(1.0))];
        let orders: [ListOrder<(&str, Option<f64>)>; 2] =
            [("name", "name", None), ("size", "size", Some(|entry| entry.1))];
        let shown = |text: &str| {
            let query = ListQuery::of(&Query::of(text.as_bytes()));
            query.chosen(&all, &orders, |entry| entry.0.to_owned()).iter().map(|entry| entry.0).collect::<Vec<_>>()
        };
        assert_eq!(shown(""), ["Alpha", "beta", "alphabet"]);
        assert_eq!(shown("find=+ALPHA"), ["Alpha", "alphabet"]);
        assert_eq!(shown("sort=size"), ["alphabet", "Alpha", "beta"]);
        assert_eq!(shown("sort=name&find=alpha"), ["Alpha", "alphabet"]);
        assert_eq!(shown("sort=nonsense"), shown(""));
        let query = ListQuery::of(&Query::of(b"find=%3Cb%3E&sort=size"));
        let form = query.form("workers", 2, &orders).into_string();
        assert!(form.contains("value=\"&lt;b&gt;\"") && form.contains("<option value=\"size\" selected>"), "{form}");
        assert!(query.form("workers", 1, &orders).into_string().is_empty(), "one entry needs no form");
    }
}

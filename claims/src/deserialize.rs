//! TOML for serde: the declared types say what a text must be, and all problems are collected, each with its place.
//!
//! The deserializer of the crate `toml` ends at the first problem. This one never fails: it reports a value of a wrong type
//! and puts an empty value in its place, and it reports and leaves out a key that a struct does not declare. A list of one
//! item may be written as the item. A list must not be empty, except where it is optional.

use std::cell::RefCell;
use std::sync::Arc;

use powersweep_experiments::reading::{integer, kind, suggestion};
use powersweep_experiments::{ManifestErrors, Problem};
use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum size of a text (bytes).
const TEXT_MAX: usize = 1 << 20;

/// A value with its place, or its key with the place of the key.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a, 't> {
    /// The key of the value, or of the list that has it.
    pub(crate) key: &'a str,
    value: &'a DeValue<'t>,
    /// Start and end in the text.
    place: (usize, usize),
    is_optional: bool,
    problems: &'a RefCell<Vec<Problem>>,
}

/// Reads a text into a declared type and checks it. `file` is the name shown in messages.
pub(crate) fn parse<T: DeserializeOwned>(
    file: &str,
    text: &str,
    check: impl FnOnce(&mut T, Node<'_, '_>),
) -> Result<T, ManifestErrors> {
    let problems: RefCell<Vec<Problem>> = RefCell::default();
    let is_too_long = text.len() > TEXT_MAX;
    let (table, errors) = DeTable::parse_recoverable(if is_too_long { "" } else { text });
    let value = DeValue::Table(table.into_inner());
    let root = Node { key: "", value: &value, place: (0, 0), is_optional: false, problems: &problems };
    if is_too_long {
        root.problem(format!("the text has {} bytes", text.len()), format!("at most {TEXT_MAX} bytes"));
    }
    problems.borrow_mut().extend(errors.iter().map(|error| Problem::syntax(text, error)));
    let mut found = None;
    let mut refused = Vec::new();
    if problems.borrow().is_empty() {
        match T::deserialize(root) {
            Ok(mut declared) => {
                refused = problems.take();
                check(&mut declared, root);
                found = Some(declared);
            }
            Err(error) => root.problem(error.to_string(), "this is a bug: please report it"),
        }
    }
    // A check of the empty value in the place of a refused one says nothing new.
    let starts: Vec<usize> = refused.iter().map(|problem| problem.span().start).collect();
    refused.extend(problems.take().into_iter().filter(|problem| !starts.contains(&problem.span().start)));
    found.filter(|_| refused.is_empty()).ok_or_else(|| ManifestErrors::new(file, &Arc::from(text), refused))
}

impl<'a, 't> Node<'a, 't> {
    /// Reports a problem.
    pub(crate) fn problem(self, message: impl Into<String>, expected: impl Into<String>) {
        self.problems.borrow_mut().push(Problem::new(self.place.0..self.place.1, message, expected));
    }

    /// Reports that this is not a value that was expected.
    pub(crate) fn wrong(self, expected: &str) {
        self.problem(format!("`{}` cannot be {}", self.key, kind(self.value)), format!("expected {expected}"));
    }

    /// A value of the right type; else an empty one, which is reported.
    fn or_empty<T: Default>(self, found: Option<T>, expected: &str) -> T {
        if found.is_none() {
            self.wrong(expected);
        }
        found.unwrap_or_default()
    }

    /// Reports that a name is not one of the `known`. `label` is shown at the name.
    pub(crate) fn unknown<'n>(
        self,
        name: &str,
        message: String,
        label: &str,
        known: impl IntoIterator<Item = &'n str> + Clone,
    ) {
        let problem = Problem::new(self.place.0..self.place.1, message, label).help(suggestion(name, known));
        self.problems.borrow_mut().push(problem);
    }

    /// Reports a key that this table lacks.
    pub(crate) fn require(self, key: &str, expected: &str) {
        if self.get(key).is_none() {
            self.start().problem(format!("`{key}` is missing"), format!("expected {expected}"));
        }
    }

    /// The first character: the place of a problem of a whole table.
    pub(crate) fn start(self) -> Node<'a, 't> {
        Node { place: (self.place.0, self.place.0 + 1), ..self }
    }

    /// The value of a key of this table.
    pub(crate) fn get(self, key: &str) -> Option<Node<'a, 't>> {
        self.entries().map(|(_, value)| value).find(|value| value.key == key)
    }

    /// The value of a key; this table without it.
    pub(crate) fn at(self, key: &str) -> Node<'a, 't> {
        self.get(key).unwrap_or(self)
    }

    /// The keys and values of this table, in the order of the text.
    pub(crate) fn entries(self) -> impl Iterator<Item = (Node<'a, 't>, Node<'a, 't>)> {
        let entries = self.value.as_table().into_iter().flatten().map(|(key, item)| {
            let value = Node { key: key.get_ref(), ..self.child(item) };
            (Node { place: (key.span().start, key.span().end), ..value }, value)
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(key, _)| key.place);
        entries.into_iter()
    }

    /// Whether this is a list.
    pub(crate) fn is_list(self) -> bool {
        self.value.is_array()
    }

    /// The items of this list; a value that is not a list is the only one.
    pub(crate) fn items(self) -> impl Iterator<Item = Node<'a, 't>> {
        let list = self.value.as_array();
        let alone = list.is_none().then_some(Node { is_optional: false, ..self });
        list.into_iter().flatten().map(move |item| self.child(item)).chain(alone)
    }

    fn child(self, item: &'a Spanned<DeValue<'t>>) -> Node<'a, 't> {
        let place = (item.span().start, item.span().end);
        Node { value: item.get_ref(), place, is_optional: false, ..self }
    }

    /// The text, unless it is blank.
    pub(crate) fn text(self) -> Option<&'a str> {
        self.value.as_str().filter(|text| !text.trim().is_empty())
    }

    fn number(self) -> Option<f64> {
        match self.value {
            DeValue::Integer(value) => integer(value).map(|value| value as f64),
            DeValue::Float(value) => value.as_str().replace('_', "").parse().ok().filter(|v: &f64| v.is_finite()),
            _ => None,
        }
    }
}

impl<'de> IntoDeserializer<'de> for Node<'_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Node<'_, '_> {
    type Error = Error;

    /// A cell: a text, a number, true or false.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.value, self.number()) {
            (DeValue::String(text), _) => return visitor.visit_str(text),
            (DeValue::Boolean(value), _) => return visitor.visit_bool(*value),
            (_, Some(number)) => return visitor.visit_f64(number),
            _ => self.wrong("a text, a number, true or false"),
        }
        visitor.visit_bool(false)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.or_empty(self.value.as_bool(), "true or false"))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.or_empty(self.number(), "a number"))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.or_empty(self.text(), "a text"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(Node { is_optional: true, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.items().next().is_none() && !self.is_optional {
            self.wrong("a list of texts, numbers or tables that is not empty");
        }
        visitor.visit_seq(SeqDeserializer::new(self.items()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if !self.value.is_table() {
            self.wrong("a table");
        }
        visitor.visit_map(MapDeserializer::new(self.entries().map(|(_, value)| (value.key, value))))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if !self.value.is_table() {
            self.problem(format!("{name} must be a table"), format!("this is {}", kind(self.value)));
        }
        for (key, _) in self.entries().filter(|(key, _)| !keys.contains(&key.key)) {
            let message = format!("{name} has no key `{}`", key.key);
            key.unknown(key.key, message, "unknown key", keys.iter().copied());
        }
        let declared = self.entries().filter(|(key, _)| keys.contains(&key.key));
        visitor.visit_map(MapDeserializer::new(declared.map(|(_, value)| (value.key, value))))
    }

    /// One of some names, or a choice by form: `Table` is read from a table, `One` from any other value.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if variants.contains(&"Table") {
            let form = if self.value.is_table() { "Table" } else { "One" };
            let chosen = MapDeserializer::new(std::iter::once((form, self)));
            return visitor.visit_enum(MapAccessDeserializer::new(chosen));
        }
        let text = self.text().unwrap_or_default();
        let expected = variants.join(", ");
        if text.is_empty() {
            self.wrong(&expected);
        } else if !variants.contains(&text) {
            self.problem(format!("there is no {} `{text}`", self.key), format!("expected {expected}"));
        }
        let name = if variants.contains(&text) { text } else { variants[0] };
        visitor.visit_enum(name.into_deserializer())
    }

    /// A part of the text that another reader checks.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct identifier
    }
}

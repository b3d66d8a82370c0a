//! Records that describe themselves: each field, with its doc comment, is one column of the results.
//!
//! [`record!`](crate::record) declares a struct and, from the same text, the table `FIELDS`: name, doc, kind and
//! getter of each field in order. So a metric is declared and explained in one place. This module uses no Arrow: the
//! results crate turns fields into columns.

/// The value of one field, borrowed from its record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Datum<'a> {
    /// Not applicable.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// A vector of counts.
    Counts(&'a [u64]),
    /// A vector of reals.
    Reals(&'a [f64]),
}

/// The kind of a value: of a parameter, of a record's field, of a column of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A truth value.
    Bool,
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit real.
    Real,
    /// A text.
    Text,
    /// An instant: microseconds since 1970 in UTC. Only the farm's own columns have it.
    Instant,
    /// A vector of 64-bit signed integers.
    Ints,
    /// A vector of 64-bit reals.
    Reals,
}

/// A Rust type that can be a field of a record.
pub trait Fact {
    /// The type of its values.
    const KIND: Kind;
    /// Whether it may be absent.
    const OPTIONAL: bool = false;
    /// The value.
    fn datum(&self) -> Datum<'_>;
}

/// Implements [`Fact`] for types that always have a value: type, kind, and the value as a [`Datum`].
macro_rules! facts {
    ($($ty:ty, $kind:ident, $value:ident => $datum:expr;)*) => {
        $(impl Fact for $ty {
            const KIND: Kind = Kind::$kind;
            fn datum(&self) -> Datum<'_> {
                let $value = self;
                $datum
            }
        })*
    };
}

facts! {
    bool, Bool, value => Datum::Bool(*value);
    f64, Real, value => Datum::Real(*value);
    i64, Int, value => Datum::Int(*value);
    // Counts stay far below 2^63; saturation keeps their sign in any case.
    u64, Int, value => Datum::Int(i64::try_from(*value).unwrap_or(i64::MAX));
    u32, Int, value => Datum::Int(i64::from(*value));
    u8, Int, value => Datum::Int(i64::from(*value));
    &'static str, Text, value => Datum::Text(value);
    String, Text, value => Datum::Text(value);
    Vec<u64>, Ints, value => Datum::Counts(value);
    Vec<f64>, Reals, value => Datum::Reals(value);
}

impl<T: Fact> Fact for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn datum(&self) -> Datum<'_> {
        self.as_ref().map_or(Datum::Null, T::datum)
    }
}

/// One field of the record `R`.
#[derive(Debug, Clone, Copy)]
pub struct Field<R: 'static> {
    /// The field's name; also the column's.
    pub name: &'static str,
    /// The field's doc comment, lines joined, with a leading space.
    pub doc: &'static str,
    /// Type of the values.
    pub kind: Kind,
    /// Whether values may be absent.
    pub optional: bool,
    /// Reads the value.
    pub get: for<'a> fn(&'a R) -> Datum<'a>,
}

/// Declares a struct of documented public fields and its table `FIELDS` (see [`Field`]).
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ pub $field:ident : $ty:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $( $(#[doc = $doc])+ pub $field: $ty, )*
        }

        impl $name {
            /// The fields in order: one column of the results each.
            pub const FIELDS: &'static [$crate::facts::Field<$name>] = &[
                $( $crate::facts::Field {
                    name: stringify!($field),
                    doc: concat!($($doc),+),
                    kind: <$ty as $crate::facts::Fact>::KIND,
                    optional: <$ty as $crate::facts::Fact>::OPTIONAL,
                    get: |record| $crate::facts::Fact::datum(&record.$field),
                }, )*
            ];
        }
    };
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares public structs")]
mod tests {
    use super::*;

    record! {
        /// A record.
        #[derive(Debug)]
        pub struct Sample {
            /// First
            /// line.
            pub a_s: f64,
            /// Second.
            pub b_count: Option<u64>,
            /// Third.
            pub c: Vec<u64>,
        }
    }

    #[test]
    fn fields_follow_the_declaration() {
        let sample = Sample { a_s: 1.5, b_count: None, c: vec![1, 2] };
        let names: Vec<_> = Sample::FIELDS.iter().map(|f| (f.name, f.doc.trim(), f.kind, f.optional)).collect();
        assert_eq!(
            names,
            [
                ("a_s", "First line.", Kind::Real, false),
                ("b_count", "Second.", Kind::Int, true),
                ("c", "Third.", Kind::Ints, false)
            ]
        );
        let values: Vec<_> = Sample::FIELDS.iter().map(|f| (f.get)(&sample)).collect();
        assert_eq!(values, [Datum::Real(1.5), Datum::Null, Datum::Counts(&[1, 2])]);
    }
}

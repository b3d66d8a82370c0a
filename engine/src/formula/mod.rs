//! Expressions over named variables, as a manifest has them.
//!
//! ```text
//! expression = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//! sum        = product { ("+" | "-") product }
//! product    = signed { ("*" | "/") signed }
//! signed     = "-" signed | power
//! power      = atom [ "^" signed ]
//! atom       = number | variable | function "(" expression { "," expression } ")" | "(" expression ")"
//! ```
//!
//! A formula is a program for a stack machine, and its text is made of the program ([`Formula`]'s `Display`). This text
//! stands for the formula in a task's identity: white space, parentheses without effect and other spellings of a number
//! do not count. So the form of the text never changes, as if it were a stored format.
//!
//! Arithmetic follows IEEE 754 and functions come from `libm`, so that a value has the same bits on every machine. Every
//! operation on NaN gives NaN, but the value that [`Function::If`] does not choose has no effect.

mod known;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

pub use known::{Known, Trend};
pub use parse::FormulaError;

/// Bytes of a text. The text of any formula is shorter, so that it can be read again.
pub const TEXT_MAX: usize = 8192;

/// Numbers, variables, operators and functions of one formula.
const OPS_MAX: usize = 256;

/// Levels of parentheses, arguments, signs and exponents: bounds the parser's recursion.
const DEPTH_MAX: usize = 64;

/// Values that wait for their operation at one time.
const STACK: usize = 32;

/// Whole exponents up to this number, written as numbers, are repeated multiplications.
const REPEATED_MAX: u8 = 16;

/// A variable that a formula can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Whether its value changes with time.
    pub changes: bool,
}

/// An expression, ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    variables: &'static [Variable],
    /// In postfix order. Every operation finds its values, and one value remains.
    ops: Vec<Op>,
}

/// A step of the stack machine.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    /// Pushes a finite number that is not negative.
    Number(f64),
    /// Pushes a variable, by its position in the list.
    Variable(u8),
    Negate,
    /// `x * x * ...`, this number of times; at least 2.
    Repeat(u8),
    Binary(Binary),
    Call(Function),
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
}

/// How tightly a part of a text binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Sum,
    Product,
    Sign,
    Power,
    Atom,
}

impl Binary {
    /// All operators with their symbols and levels.
    const ALL: [(&'static str, Level, Binary); 11] = [
        ("+", Level::Sum, Binary::Add),
        ("-", Level::Sum, Binary::Subtract),
        ("*", Level::Product, Binary::Multiply),
        ("/", Level::Product, Binary::Divide),
        ("^", Level::Power, Binary::Power),
        ("<", Level::Comparison, Binary::Less),
        ("<=", Level::Comparison, Binary::AtMost),
        (">", Level::Comparison, Binary::Greater),
        (">=", Level::Comparison, Binary::AtLeast),
        ("==", Level::Comparison, Binary::Equal),
        ("!=", Level::Comparison, Binary::Unequal),
    ];

    #[inline(always)]
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            // `pow` has a value for some NaN: `1 ^ NaN` and `NaN ^ 0`.
            Binary::Power => {
                if a.is_nan() | b.is_nan() {
                    f64::NAN
                } else {
                    libm::pow(a, b)
                }
            }
            Binary::Less => truth(a, b, a < b),
            Binary::AtMost => truth(a, b, a <= b),
            Binary::Greater => truth(a, b, a > b),
            Binary::AtLeast => truth(a, b, a >= b),
            Binary::Equal => truth(a, b, a == b),
            Binary::Unequal => truth(a, b, a != b),
        }
    }
}

/// The value of a comparison: 1 or 0, or NaN if one side is NaN.
#[inline(always)]
fn truth(a: f64, b: f64, holds: bool) -> f64 {
    if a.is_nan() | b.is_nan() { f64::NAN } else { f64::from(u8::from(holds)) }
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Min,
    Max,
    Abs,
    Sqrt,
    Cbrt,
    Ln,
    Log2,
    Log10,
    Exp,
    Floor,
    Ceil,
    /// Takes the second value if the first is not 0, else the third.
    If,
}

impl Function {
    /// All functions with their names and numbers of values. `pow` is another spelling of an operator.
    const ALL: [(&'static str, usize, Function); 12] = [
        ("min", 2, Function::Min),
        ("max", 2, Function::Max),
        ("abs", 1, Function::Abs),
        ("sqrt", 1, Function::Sqrt),
        ("cbrt", 1, Function::Cbrt),
        ("ln", 1, Function::Ln),
        ("log2", 1, Function::Log2),
        ("log10", 1, Function::Log10),
        ("exp", 1, Function::Exp),
        ("floor", 1, Function::Floor),
        ("ceil", 1, Function::Ceil),
        ("if", 3, Function::If),
    ];

    /// The name and the number of values.
    #[inline(always)]
    fn signature(self) -> (&'static str, usize) {
        let (name, count, _) = Function::ALL[self as usize];
        (name, count)
    }

    /// The value for as many values as the function takes, the first in `a`; others are ignored.
    #[inline(always)]
    fn of(self, a: f64, b: f64, c: f64) -> f64 {
        match self {
            // Not `f64::min`, which skips NaN, and leaves the sign of a zero open.
            Function::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Function::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Function::Abs => libm::fabs(a),
            Function::Sqrt => libm::sqrt(a),
            Function::Cbrt => libm::cbrt(a),
            Function::Ln => libm::log(a),
            Function::Log2 => libm::log2(a),
            Function::Log10 => libm::log10(a),
            Function::Exp => libm::exp(a),
            Function::Floor => libm::floor(a),
            Function::Ceil => libm::ceil(a),
            Function::If if a.is_nan() => f64::NAN,
            Function::If => {
                if a != 0.0 {
                    b
                } else {
                    c
                }
            }
        }
    }
}

impl Formula {
    /// Reads an expression over these variables.
    ///
    /// # Errors
    /// [`FormulaError`] has the place and the expectation. Final: the text is wrong.
    pub fn parse(text: &str, variables: &'static [Variable]) -> Result<Formula, FormulaError> {
        Ok(Formula { variables, ops: parse::ops(text, variables)? })
    }

    /// The positions of the variables that it reads, ascending.
    pub fn reads(&self) -> Vec<u8> {
        let mut reads: Vec<u8> =
            self.ops.iter().filter_map(|op| if let Op::Variable(at) = op { Some(*at) } else { None }).collect();
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    /// Whether its value changes with time, because it reads a variable that does.
    pub fn changes(&self) -> bool {
        self.reads().iter().any(|at| self.variables[usize::from(*at)].changes)
    }

    /// Its value. `read`: the value of a variable, by its position in the list.
    #[inline]
    pub fn value(&self, read: impl Fn(u8) -> f64) -> f64 {
        let mut stack = [0.0; STACK];
        let mut len: usize = 0;
        for op in &self.ops {
            // Positions are taken modulo the size, so that no access is checked; `parse` keeps them below it.
            let at = |back: usize| len.wrapping_sub(back) % STACK;
            match *op {
                Op::Number(value) => {
                    stack[at(0)] = value;
                    len += 1;
                }
                Op::Variable(variable) => {
                    stack[at(0)] = read(variable);
                    len += 1;
                }
                Op::Negate => stack[at(1)] = -stack[at(1)],
                Op::Repeat(times) => {
                    let factor = stack[at(1)];
                    stack[at(1)] = (1..times).fold(factor, |product, _| product * factor);
                }
                Op::Binary(operator) => {
                    stack[at(2)] = operator.of(stack[at(2)], stack[at(1)]);
                    len -= 1;
                }
                Op::Call(function) => {
                    let (_, count) = function.signature();
                    let first = at(count);
                    stack[first] = function.of(stack[first], stack[(first + 1) % STACK], stack[(first + 2) % STACK]);
                    len -= count - 1;
                }
            }
        }
        stack[0]
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<(String, Level)> = Vec::new();
        for op in &self.ops {
            // The last part, in parentheses if it binds less tightly than its place.
            let mut part = |level: Level| match parts.pop() {
                Some((text, binds)) if binds < level => format!("({text})"),
                part => part.map(|(text, _)| text).unwrap_or_default(),
            };
            let made = match *op {
                Op::Number(value) => (number(value), Level::Atom),
                Op::Variable(variable) => (self.variables[usize::from(variable)].name.to_owned(), Level::Atom),
                Op::Negate => (format!("-{}", part(Level::Sign)), Level::Sign),
                Op::Repeat(times) => (format!("{} ^ {times}", part(Level::Atom)), Level::Power),
                Op::Binary(operator) => {
                    let (symbol, level, _) = Binary::ALL[operator as usize];
                    let (before, behind) = match level {
                        Level::Comparison => (Level::Sum, Level::Sum),
                        Level::Sum => (Level::Sum, Level::Product),
                        Level::Power => (Level::Atom, Level::Sign),
                        _ => (Level::Product, Level::Sign),
                    };
                    let right = part(behind);
                    (format!("{} {symbol} {right}", part(before)), level)
                }
                Op::Call(function) => {
                    let (name, count) = function.signature();
                    let mut values: Vec<String> = (0..count).map(|_| part(Level::Comparison)).collect();
                    values.reverse();
                    (format!("{name}({})", values.join(", ")), Level::Atom)
                }
            };
            parts.push(made);
        }
        parts.iter().try_for_each(|(text, _)| f.write_str(text))
    }
}

/// A number in the fewest digits that give the same value back.
fn number(value: f64) -> String {
    let plain = value == 0.0 || (1e-4..1e7).contains(&value);
    if plain { value.to_string() } else { format!("{value:e}") }
}

//! From text to the program of a [`Formula`](super::Formula): recursive descent, which emits operations in postfix order.
use super::{Binary, DEPTH_MAX, Function, Level, OPS_MAX, Op, REPEATED_MAX, STACK, TEXT_MAX, Variable};

/// Why a text is no expression. Final: the text has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {place}, expected {expected}, found {found}")]
pub struct FormulaError {
    /// The place: column, in characters from 1, and the line if the text has several.
    pub place: String,
    /// What would be right there.
    pub expected: String,
    /// The piece of text at the place.
    pub found: String,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'t> {
    Number(f64),
    Name(&'t str),
    /// An operator, a parenthesis or a comma.
    Symbol(&'t str),
    End,
}

/// Two characters that are one symbol.
const PAIRS: [&str; 4] = ["<=", ">=", "==", "!="];

/// The operations of a text.
pub(super) fn ops(text: &str, variables: &'static [Variable]) -> Result<Vec<Op>, FormulaError> {
    let token = Token::End;
    let mut parser = Parser { text, variables, token, start: 0, end: 0, ops: Vec::new(), height: 0, depth: 0 };
    if text.len() > TEXT_MAX {
        parser.start = text.floor_char_boundary(TEXT_MAX);
        parser.end = parser.start;
        return Err(parser.error(format!("the end: a formula has at most {TEXT_MAX} bytes")));
    }
    parser.advance()?;
    parser.expression()?;
    if parser.token != Token::End {
        return Err(parser.error("an operator or the end"));
    }
    Ok(parser.ops)
}

struct Parser<'t> {
    text: &'t str,
    variables: &'static [Variable],
    /// The next token, and its place in the text.
    token: Token<'t>,
    start: usize,
    end: usize,
    ops: Vec<Op>,
    /// Values on the stack after `ops`.
    height: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// The error that the next token is not what is expected.
    fn error(&self, expected: impl Into<String>) -> FormulaError {
        let before = &self.text[..self.start];
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let place = match before.matches('\n').count() {
            0 => format!("column {column}"),
            lines => format!("line {}, column {column}", lines + 1),
        };
        let found = match self.text[self.start..self.end].trim() {
            "" if self.start < self.text.len() => "more".to_owned(),
            "" => "the end".to_owned(),
            "=" => "`=` (equality is `==`)".to_owned(),
            token => format!("`{}`", token.chars().take(40).collect::<String>()),
        };
        FormulaError { place, expected: expected.into(), found }
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<(), FormulaError> {
        let rest = self.text[self.end..].trim_start();
        self.start = self.text.len() - rest.len();
        let first = rest.chars().next();
        let len = match first {
            None => 0,
            Some('0'..='9' | '.') => number_len(rest),
            Some('a'..='z' | 'A'..='Z' | '_') => prefix(rest, |c| c.is_ascii_alphanumeric() || c == '_'),
            Some(_) if PAIRS.iter().any(|pair| rest.starts_with(pair)) => 2,
            Some(other) => other.len_utf8(),
        };
        self.end = self.start + len;
        let text = &rest[..len];
        self.token = match first {
            None => Token::End,
            Some('0'..='9' | '.') => match text.parse() {
                Ok(value) if f64::is_finite(value) => Token::Number(value),
                Ok(_) => return Err(self.error("a number of at most 1.7e308")),
                Err(_) => return Err(self.error("a number")),
            },
            Some('a'..='z' | 'A'..='Z' | '_') => Token::Name(text),
            Some(_) => Token::Symbol(text),
        };
        Ok(())
    }

    /// Takes the next token if it is this symbol.
    fn take(&mut self, symbol: &str) -> Result<bool, FormulaError> {
        let is_next = self.token == Token::Symbol(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Takes the next token, an operator of this level.
    fn take_operator(&mut self, wanted: Level) -> Result<Option<Binary>, FormulaError> {
        let Token::Symbol(symbol) = self.token else { return Ok(None) };
        let found = Binary::ALL.iter().find(|(text, level, _)| *text == symbol && *level == wanted);
        if found.is_some() {
            self.advance()?;
        }
        Ok(found.map(|(_, _, operator)| *operator))
    }

    /// Appends an operation. `takes`: number of values that it takes from the stack.
    fn emit(&mut self, op: Op, takes: usize) -> Result<(), FormulaError> {
        if self.ops.len() == OPS_MAX {
            return Err(
                self.error(format!("the end: a formula has at most {OPS_MAX} numbers, variables and operations"))
            );
        }
        self.height = self.height + 1 - takes;
        if self.height > STACK {
            return Err(self.error(format!("less nesting: at most {STACK} values can wait for their operation")));
        }
        self.ops.push(op);
        Ok(())
    }

    fn expression(&mut self) -> Result<(), FormulaError> {
        self.sum()?;
        let Some(operator) = self.take_operator(Level::Comparison)? else { return Ok(()) };
        self.sum()?;
        self.emit(Op::Binary(operator), 2)?;
        if let Token::Symbol(symbol) = self.token
            && Binary::ALL.iter().any(|(text, level, _)| *text == symbol && *level == Level::Comparison)
        {
            return Err(self.error("parentheses around one of two comparisons"));
        }
        Ok(())
    }

    fn sum(&mut self) -> Result<(), FormulaError> {
        self.product()?;
        while let Some(operator) = self.take_operator(Level::Sum)? {
            self.product()?;
            self.emit(Op::Binary(operator), 2)?;
        }
        Ok(())
    }

    fn product(&mut self) -> Result<(), FormulaError> {
        self.signed()?;
        while let Some(operator) = self.take_operator(Level::Product)? {
            self.signed()?;
            self.emit(Op::Binary(operator), 2)?;
        }
        Ok(())
    }

    /// Every recursion goes through this function.
    fn signed(&mut self) -> Result<(), FormulaError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(format!("less nesting: at most {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        if self.take("-")? {
            self.signed()?;
            self.emit(Op::Negate, 1)?;
        } else {
            self.atom()?;
            if self.take_operator(Level::Power)?.is_some() {
                let exponent_at = self.ops.len();
                self.signed()?;
                self.power(exponent_at)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Appends a power whose exponent begins at this operation.
    fn power(&mut self, exponent_at: usize) -> Result<(), FormulaError> {
        let repeated = match self.ops[exponent_at..] {
            [Op::Number(times)] => (2..=REPEATED_MAX).find(|whole| f64::from(*whole) == times),
            _ => None,
        };
        let Some(times) = repeated else { return self.emit(Op::Binary(Binary::Power), 2) };
        self.ops.pop();
        self.height -= 1;
        self.emit(Op::Repeat(times), 1)
    }

    fn atom(&mut self) -> Result<(), FormulaError> {
        match self.token {
            Token::Number(value) => {
                self.emit(Op::Number(value), 0)?;
                self.advance()
            }
            Token::Name(name) => self.named(name),
            Token::Symbol("(") => {
                self.advance()?;
                self.expression()?;
                if self.take(")")? { Ok(()) } else { Err(self.error("an operator or `)`")) }
            }
            _ => Err(self.error("a number, a variable, a function, `-` or `(`")),
        }
    }

    /// A variable or a function.
    fn named(&mut self, name: &str) -> Result<(), FormulaError> {
        if let Some(at) = (0..).zip(self.variables).find_map(|(at, variable)| (variable.name == name).then_some(at)) {
            self.emit(Op::Variable(at), 0)?;
            return self.advance();
        }
        if name == "pow" {
            let exponent_at = self.arguments(name, 2)?;
            return self.power(exponent_at);
        }
        if let Some((_, count, function)) = Function::ALL.iter().find(|(known, ..)| *known == name) {
            self.arguments(name, *count)?;
            return self.emit(Op::Call(*function), *count);
        }
        let variables: Vec<&str> = self.variables.iter().map(|variable| variable.name).collect();
        let functions = Function::ALL.iter().map(|(name, ..)| *name).chain(["pow"]).collect::<Vec<_>>().join(", ");
        Err(self.error(format!("a variable ({}) or a function ({functions})", variables.join(", "))))
    }

    /// The values of a function in parentheses. Returns where the last one begins.
    fn arguments(&mut self, name: &str, count: usize) -> Result<usize, FormulaError> {
        self.advance()?;
        if !self.take("(")? {
            return Err(self.error(format!("`(`: `{name}` is a function")));
        }
        let mut last_at = self.ops.len();
        for number in 1..=count {
            last_at = self.ops.len();
            self.expression()?;
            let (symbol, then) =
                if number == count { (")", String::new()) } else { (",", format!(" and value {}", number + 1)) };
            if !self.take(symbol)? {
                let takes = format!("`{name}` takes {count} value{}", if count == 1 { "" } else { "s" });
                return Err(self.error(format!("an operator or `{symbol}`{then}: {takes}")));
            }
        }
        Ok(last_at)
    }
}

/// Bytes at the beginning of a text that are all of a kind.
fn prefix(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

/// Bytes of the number at the beginning of a text.
fn number_len(text: &str) -> usize {
    let digits = |from: usize| from + prefix(&text[from..], |c| c.is_ascii_digit());
    let whole = digits(0);
    let mantissa = if text[whole..].starts_with('.') { digits(whole + 1) } else { whole };
    if !text[mantissa..].starts_with(['e', 'E']) {
        return mantissa;
    }
    let sign = usize::from(text[mantissa + 1..].starts_with(['+', '-']));
    let end = digits(mantissa + 1 + sign);
    // Without digits, the letter begins a name.
    if end > mantissa + 1 + sign { end } else { mantissa }
}

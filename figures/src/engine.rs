//! Vega and Vega-Lite in QuickJS: a spec becomes an SVG drawing.
//!
//! The script has no files, no network, no clock and no modules. Its memory is limited, and the caller can stop it.

use std::cell::Cell;
use std::fmt::Write as _;
use std::rc::Rc;

use powersweep_dataset::{Error, failure};
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Promise, Runtime};
use serde_json::Value;

use crate::Result;
use crate::font;
use crate::rows::undrawn;

static VEGA: &str = include_str!("../vendor/vega.min.js");
static VEGA_LITE: &str = include_str!("../vendor/vega-lite.min.js");
static HOST: &str = include_str!("host.js");

/// Memory of the script. The figures of the tests take less than half of it.
const MEMORY_MIB: usize = 256;
/// Stack of the script. A thread of the tests has 2 MiB.
const STACK_BYTES: usize = 1 << 20;

/// A drawing, with what the libraries did not like about its spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The SVG file. The same spec gives the same bytes.
    pub svg: String,
    /// Warnings of Vega-Lite and Vega; empty for the specs of this crate.
    pub warnings: Vec<String>,
}

/// Vega and Vega-Lite, loaded.
pub struct Engine {
    context: Context,
    stopped: Rc<Cell<bool>>,
}

impl Engine {
    /// Loads the libraries. Drawing ends with an error soon after `stop` is true; `stop` is asked often.
    pub fn start(mut stop: impl FnMut() -> bool + 'static) -> Result<Engine> {
        let stopped = Rc::new(Cell::new(false));
        let told = Rc::clone(&stopped);
        let runtime = Runtime::new().map_err(undrawn)?;
        runtime.set_memory_limit(MEMORY_MIB << 20);
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            told.set(told.get() || stop());
            told.get()
        })));
        let context = Context::full(&runtime).map_err(undrawn)?;
        let engine = Engine { context, stopped };
        engine.run(load)?;
        Ok(engine)
    }

    /// Draws a Vega-Lite spec whose data are inline.
    pub fn draw(&self, spec: &Value) -> Result<Drawn> {
        let text = spec.to_string();
        let mut parts = self.run(|ctx| {
            let draw: Function<'_> = ctx.globals().get("draw")?;
            let drawing: Promise<'_> = draw.call((text,))?;
            drawing.finish::<Vec<String>>()
        })?;
        let warnings = parts.split_off(1.min(parts.len()));
        let svg = parts.pop().map(|svg| rounded(&svg)).ok_or_else(|| undrawn("the libraries gave no drawing"))?;
        Ok(Drawn { svg, warnings })
    }

    /// Runs a piece of work in the script; an exception becomes an error.
    fn run<T>(&self, work: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>) -> Result<T> {
        self.context.with(|ctx| work(&ctx).catch(&ctx).map_err(|caught| self.failed(&caught)))
    }

    fn failed(&self, caught: &CaughtError<'_>) -> Error {
        let reason = match caught {
            CaughtError::Exception(exception) => exception.message().unwrap_or_default(),
            CaughtError::Value(value) if value.is_null() => "out of memory".to_owned(),
            CaughtError::Value(value) => format!("{value:?}"),
            CaughtError::Error(error) => error.to_string(),
        };
        match &reason {
            _ if self.stopped.get() => {
                failure!(Failure, "the figure took too long and was stopped: draw fewer rows, by conditions")
            }
            reason if reason.contains("out of memory") => {
                failure!(Failure, "the figure needs more than {MEMORY_MIB} MiB: draw fewer rows, by conditions")
            }
            _ => undrawn(reason),
        }
    }
}

/// The drawing with paths of at most three decimals, a thousandth of a px: a third of the bytes.
fn rounded(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(begin) = rest.find(" d=\"").map(|at| at + 4) {
        let end = rest[begin..].find('"').map_or(rest.len(), |length| begin + length);
        out.push_str(&rest[..begin]);
        round_numbers(&rest[begin..end], &mut out);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Copies a path, its numbers with at most three decimals. Numbers with an exponent are rounded, too.
fn round_numbers(path: &str, out: &mut String) {
    let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | '-' | '+');
    let mut rest = path;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-')) {
        // A sign after the first place begins the next number, unless it belongs to an exponent.
        let bytes = rest.as_bytes();
        let ends = |at: &usize| {
            !is_part(char::from(bytes[*at])) || (matches!(bytes[*at], b'-' | b'+') && bytes[*at - 1] != b'e')
        };
        let end = (begin + 1..bytes.len()).find(ends).unwrap_or(bytes.len());
        out.push_str(&rest[..begin]);
        let number = &rest[begin..end];
        match number.parse::<f64>() {
            Ok(value) if number.len() > 4 => {
                let _ = write!(out, "{}", (value * 1000.0).round() / 1000.0 + 0.0);
            }
            _ => out.push_str(number),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
}

fn load(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    ctx.globals().set("textWidth", Function::new(ctx.clone(), text_width)?)?;
    ctx.eval::<(), _>(HOST)?;
    ctx.eval::<(), _>(VEGA)?;
    ctx.eval::<(), _>(VEGA_LITE)?;
    ctx.globals().get::<_, Function<'_>>("begin")?.call::<_, ()>(())
}

fn text_width(text: String, size_px: f64, is_bold: bool) -> f64 {
    font::width(&text, size_px, is_bold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_three_decimals_and_nothing_else_changes() {
        let svg = r#"<g x="1.23456"><path d="M0.12345,-7h1.00049v-2.5e-7L12,0.5-1.99999Z"/><text>1.23456</text></g>"#;
        let expected = r#"<g x="1.23456"><path d="M0.123,-7h1v0L12,0.5-2Z"/><text>1.23456</text></g>"#;
        assert_eq!(rounded(svg), expected);
        assert_eq!(rounded("<svg/>"), "<svg/>");
    }
}

//! The bundled font, Liberation Sans: its glyphs are as wide as those of Arial and Helvetica.

use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use resvg::usvg::fontdb::{Database, Source};
use ttf_parser::Face;

/// Families of a figure's text: the bundled one, then fonts of the same widths.
pub(crate) const FAMILIES: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

/// Size of a figure's text: 8 pt at 96 px/in.
pub(crate) const SIZE_PX: f64 = 10.67;

static REGULAR: &[u8] = include_bytes!("../fonts/LiberationSans-Regular.ttf");
static BOLD: &[u8] = include_bytes!("../fonts/LiberationSans-Bold.ttf");

fn faces() -> &'static [Face<'static>; 2] {
    static FACES: OnceLock<[Face<'static>; 2]> = OnceLock::new();
    FACES.get_or_init(|| [REGULAR, BOLD].map(|bytes| Face::parse(bytes, 0).expect("the bundled font is valid")))
}

/// Width of a line of text (px), without kerning, which makes text narrower if it changes the width at all.
pub fn width(text: &str, size_px: f64, is_bold: bool) -> f64 {
    let face = &faces()[usize::from(is_bold)];
    let advance = |letter| {
        let glyph = face.glyph_index(letter).unwrap_or_default();
        f64::from(face.glyph_hor_advance(glyph).unwrap_or_default())
    };
    text.chars().map(advance).sum::<f64>() * size_px / f64::from(face.units_per_em())
}

/// The bundled fonts as a style sheet, for pages with drawings: a font of other widths would let texts overlap.
pub fn style_sheet() -> String {
    let face = |weight: &str, bytes: &[u8]| {
        let data = STANDARD.encode(bytes);
        format!(
            "@font-face {{ font-family: \"Liberation Sans\"; font-weight: {weight}; \
             src: url(data:font/ttf;base64,{data}) format(\"truetype\"); }}\n"
        )
    };
    face("normal", REGULAR) + &face("bold", BOLD)
}

/// The bundled fonts alone, for programs that lay out text.
pub(crate) fn database() -> Arc<Database> {
    static DATABASE: OnceLock<Arc<Database>> = OnceLock::new();
    Arc::clone(DATABASE.get_or_init(|| {
        let mut fonts = Database::new();
        for bytes in [REGULAR, BOLD] {
            fonts.load_font_source(Source::Binary(Arc::new(bytes)));
        }
        fonts.set_sans_serif_family("Liberation Sans");
        Arc::new(fonts)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Widths of Helvetica's metrics, which the font shares: in 1000 units per em, `i` is 222, `m` 833, a digit 556.
    #[test]
    fn widths_are_those_of_helvetica() {
        for (text, units) in [("i", 222.0), ("m", 833.0), ("0123", 4.0 * 556.0), ("", 0.0)] {
            assert!((width(text, 1000.0, false) - units).abs() < 1.0, "{text}: {}", width(text, 1000.0, false));
        }
        assert!(width("energy", 10.0, true) > width("energy", 10.0, false));
    }

    #[test]
    fn signs_of_titles_have_glyphs() {
        for sign in "µ×·−–—≤≥±°²³⁴⁵⁶⁷⁸⁹αβγτ".chars() {
            assert!(faces()[0].glyph_index(sign).is_some(), "{sign}");
        }
    }
}

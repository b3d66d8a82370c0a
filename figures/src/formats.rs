//! A drawing as a file: SVG, PNG, PDF with embedded fonts, HTML that needs no network.
//!
//! Each file says what it was drawn from: a JSON value of the caller, `null` for none. It does not change the drawing.

use krilla::Document;
use krilla::geom::Size;
use krilla::metadata::Metadata;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use serde_json::{Value, json};

use crate::Result;
use crate::rows::unwritten;
use crate::{font, look};

/// Resolution of a PNG file: dots per px of the drawing, 300 dots per inch.
const DOTS_PER_PX: f32 = 3.125;
/// Points of a PDF page per px of the drawing.
const PT_PER_PX: f32 = 0.75;

/// Bytes before the second chunk of a PNG file: its signature and its header.
const PNG_HEAD_BYTES: usize = 33;

/// The drawing with its text laid out in the bundled font.
pub(crate) fn tree(svg: &str) -> std::result::Result<Tree, resvg::usvg::Error> {
    let options = Options { fontdb: font::database(), font_family: "Liberation Sans".to_owned(), ..Options::default() };
    Tree::from_str(svg, &options)
}

/// The SVG file of a drawing, with the origin in its `metadata` element.
pub fn svg(drawing: &str, origin: &Value) -> String {
    let begin = drawing.find('>').map_or(drawing.len(), |at| at + 1);
    if origin.is_null() {
        return drawing.to_owned();
    }
    let origin = origin.to_string().replace('&', "&amp;").replace('<', "&lt;");
    format!("{}<metadata>{origin}</metadata>{}", &drawing[..begin], &drawing[begin..])
}

/// A PNG file with 300 dots per inch, with the origin in its text `powersweep`.
pub fn png(svg: &str, origin: &Value) -> Result<Vec<u8>> {
    let failed = |reason: String| unwritten("png", reason);
    let tree = tree(svg).map_err(|error| failed(error.to_string()))?;
    let size = tree.size();
    let dots = |px: f32| (px * DOTS_PER_PX).ceil() as u32;
    let too_large = || failed(format!("{} x {} px are too many", size.width(), size.height()));
    let mut pixmap = Pixmap::new(dots(size.width()), dots(size.height())).ok_or_else(too_large)?;
    resvg::render(&tree, Transform::from_scale(DOTS_PER_PX, DOTS_PER_PX), &mut pixmap.as_mut());
    let mut file = pixmap.encode_png().map_err(|error| failed(error.to_string()))?;
    if !origin.is_null() {
        file.splice(PNG_HEAD_BYTES..PNG_HEAD_BYTES, png_text("powersweep", &origin.to_string()));
    }
    Ok(file)
}

/// A chunk `iTXt` of a PNG file: its length, its type, a keyword, and a text that is not compressed, then the checksum.
fn png_text(keyword: &str, text: &str) -> Vec<u8> {
    let mut checked = b"iTXt".to_vec();
    checked.extend(keyword.as_bytes());
    checked.extend([0; 5]);
    checked.extend(text.as_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&checked);
    let mut chunk = ((checked.len() - 4) as u32).to_be_bytes().to_vec();
    chunk.extend(checked);
    chunk.extend(crc.sum().to_be_bytes());
    chunk
}

/// A PDF file of one page, whose fonts are embedded subsets, with the origin as its subject. It has no date and no random
/// number.
pub fn pdf(svg: &str, origin: &Value) -> Result<Vec<u8>> {
    let failed = |reason: String| unwritten("pdf", reason);
    let tree = tree(svg).map_err(|error| failed(error.to_string()))?;
    let (width, height) = (tree.size().width() * PT_PER_PX, tree.size().height() * PT_PER_PX);
    let size = Size::from_wh(width, height).ok_or_else(|| failed("the drawing is empty".to_owned()))?;
    let mut document = Document::new();
    if !origin.is_null() {
        document.set_metadata(Metadata::new().creator("powersweep".to_owned()).description(origin.to_string()));
    }
    let mut page = document.start_page_with(PageSettings::new(size));
    let mut surface = page.surface();
    surface.draw_svg(&tree, size, SvgSettings::default()).ok_or_else(|| failed("it has no size".to_owned()))?;
    surface.finish();
    page.finish();
    document.finish().map_err(|error| failed(format!("{error:?}")))
}

/// An HTML page that draws the spec by the same libraries, which it contains. The figure fills the page, and a mark shows its
/// values under the pointer.
pub fn html(spec: &Value, title: &str) -> String {
    let mut spec = spec.clone();
    look::merge(&mut spec, &json!({ "config": { "mark": { "tooltip": true } } }));
    // `<` may begin `</script>`, which would end the script.
    let spec = spec.to_string().replace('<', "\\u003c");
    let title: String = title.chars().filter(|letter| !matches!(letter, '<' | '>' | '&')).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body {{ margin: 1vmin }} #figure svg {{ width: 100%; height: auto; max-height: 97vh }}</style>\n\
         <!-- Drawn by Vega and Vega-Lite:\n\n{}\n{}-->\n<script>{}</script>\n<script>{}</script>\n</head>\n<body>\n\
         <div id=\"figure\"></div>\n<script>\nconst spec = {spec};\n{}</script>\n</body>\n</html>\n",
        include_str!("../vendor/vega.LICENSE"),
        include_str!("../vendor/vega-lite.LICENSE"),
        include_str!("../vendor/vega.min.js"),
        include_str!("../vendor/vega-lite.min.js"),
        include_str!("page.js"),
    )
}

//! Faults that a reader would see: text outside the drawing, text over text, text that is too small.

use std::sync::Arc;

use resvg::tiny_skia::Point;
use resvg::usvg::{self, Group, Node, Options, Rect, Tree, fontdb};

/// The least size of a text on paper (px): 7 pt are what journals accept.
const SMALLEST_PX: f32 = 9.0;

/// The texts of a drawing with their boxes, by the widths of the bundled font.
struct Text {
    text: String,
    place: Rect,
    corners: [Point; 4],
    size_px: f32,
    /// White text is the border of another text.
    is_border: bool,
}

fn layout(svg: &str) -> Tree {
    let mut fonts = fontdb::Database::new();
    for file in ["LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"] {
        let path = format!("{}/fonts/{file}", env!("CARGO_MANIFEST_DIR"));
        fonts.load_font_data(std::fs::read(path).expect("the font is there"));
    }
    let options = Options { fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).expect("the drawing is SVG")
}

fn collect(group: &Group, texts: &mut Vec<Text>) {
    for node in group.children() {
        match node {
            Node::Group(group) => collect(group, texts),
            Node::Text(text) => {
                let spans = text.chunks().iter().flat_map(|chunk| chunk.spans());
                let size_px = spans.map(|span| span.font_size().get()).fold(f32::INFINITY, f32::min);
                let words: String = text.chunks().iter().map(|chunk| chunk.text()).collect();
                let is_border =
                    text.chunks().iter().flat_map(|chunk| chunk.spans()).any(|span| span.stroke().is_some());
                texts.push(Text {
                    text: words,
                    place: text.abs_bounding_box(),
                    corners: corners(text),
                    size_px,
                    is_border,
                });
            }
            _ => {}
        }
    }
}

/// What is wrong with the texts of a drawing.
pub fn faults(svg: &str) -> Vec<String> {
    let tree = layout(svg);
    let (width, height) = (tree.size().width(), tree.size().height());
    let mut texts = Vec::new();
    collect(tree.root(), &mut texts);
    texts.retain(|text| !text.is_border);
    let mut faults = Vec::new();
    if texts.is_empty() {
        faults.push("no text at all".to_owned());
    }
    for text in &texts {
        let place = text.place;
        if place.left() < -0.5 || place.top() < -0.5 || place.right() > width + 0.5 || place.bottom() > height + 0.5 {
            faults.push(format!("`{}` is outside the {width} x {height} px of the drawing: {place:?}", text.text));
        }
        if text.size_px < SMALLEST_PX {
            faults.push(format!("`{}` has {} px", text.text, text.size_px));
        }
    }
    for (at, one) in texts.iter().enumerate() {
        for other in &texts[at + 1..] {
            if overprints(&one.corners, &other.corners) {
                faults.push(format!("`{}` and `{}` are over each other", one.text, other.text));
            }
        }
    }
    faults
}

/// The corners of a text's box, in the order around it. The box is a line high; letters need most of that.
fn corners(text: &usvg::Text) -> [Point; 4] {
    let place = text.bounding_box();
    let (top, bottom) = (place.top() + 0.2 * place.height(), place.bottom() - 0.2 * place.height());
    let mut corners = [(place.left(), top), (place.right(), top), (place.right(), bottom), (place.left(), bottom)]
        .map(|(x, y)| Point::from_xy(x, y));
    text.abs_transform().map_points(&mut corners);
    corners
}

/// Whether two rectangles, turned or not, share more than half a px: no line along a side separates them.
fn overprints(one: &[Point; 4], other: &[Point; 4]) -> bool {
    let sides = [one, other].into_iter().flat_map(|corners| [(corners[0], corners[1]), (corners[1], corners[2])]);
    let separates = |(from, to): (Point, Point)| {
        let (x, y) = (to.x - from.x, to.y - from.y);
        let length = x.hypot(y).max(1e-6);
        let along = |corners: &[Point; 4]| {
            let places = corners.map(|corner| (corner.x * x + corner.y * y) / length);
            (places.into_iter().fold(f32::INFINITY, f32::min), places.into_iter().fold(f32::NEG_INFINITY, f32::max))
        };
        let (one, other) = (along(one), along(other));
        one.1.min(other.1) - one.0.max(other.0) < 0.5
    };
    !sides.into_iter().any(separates)
}

#[test]
fn faults_are_found() {
    let svg = |texts: &str| {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='50' font-family='Liberation Sans' font-size='11'>{texts}</svg>"
        )
    };
    assert_eq!(faults(&svg("<text x='10' y='20'>energy</text><text x='60' y='20'>wait</text>")), [""; 0]);
    let found = |texts: &str| faults(&svg(texts)).join("; ");
    assert!(found("<text x='80' y='20'>energy</text>").contains("outside"));
    assert!(found("<text x='10' y='20'>energy</text><text x='30' y='24'>wait</text>").contains("over each other"));
    assert!(found("<text x='10' y='20' font-size='5'>energy</text>").contains("5 px"));
    assert!(found("").contains("no text"));
}

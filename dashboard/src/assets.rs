//! Files that pages load. They are in the binary: no page asks another server.

use std::io::Write;
use std::sync::LazyLock;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file, compressed once.
pub(crate) struct Asset {
    name: &'static str,
    pub(crate) media: &'static str,
    pub(crate) gzip: Bytes,
}

static ASSETS: LazyLock<[Asset; 5]> = LazyLock::new(|| {
    let script = "text/javascript; charset=utf-8";
    [
        asset("style.css", "text/css; charset=utf-8", include_bytes!("../assets/style.css")),
        asset("page.js", script, include_bytes!("../assets/page.js")),
        asset("htmx.min.js", script, include_bytes!("../assets/htmx.min.js")),
        asset("hx-sse.min.js", script, include_bytes!("../assets/hx-sse.min.js")),
        asset("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
    ]
});

/// The file of this name.
pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

fn asset(name: &'static str, media: &'static str, bytes: &[u8]) -> Asset {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).expect("memory takes all bytes");
    Asset { name, media, gzip: gzip.finish().expect("memory takes all bytes").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_page_are_small_and_load_no_other_server() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(bytes < 30_000, "{bytes} bytes");
        let style = include_str!("../assets/style.css");
        assert!(style.len() <= 10_000, "{} bytes", style.len());
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
}

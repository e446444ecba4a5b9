//! The web console: its pages, scripts and styles, as files in the program.
//!
//! What lives here: the files of `assets`, with the headers that browsers need. What does not: the calls that
//! the console makes, which are those of the HTTP API and open to anybody.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::borrow::Cow;

use rust_embed::RustEmbed;

/// The policy under which browsers run the console: its own files alone, and calls to its own server
/// (Content Security Policy Level 3).
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page that each view is shown on.
const PAGE: &str = "index.html";
/// The folders in which files are.
const FOLDERS: [&str; 3] = ["css/", "js/", "vendor/"];

#[derive(RustEmbed)]
#[folder = "assets"]
struct Files;

/// A file of the console.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its bytes.
    pub bytes: Cow<'static, [u8]>,
    /// Media type of the bytes.
    pub content_type: &'static str,
    /// Entity tag, with its quotes (RFC 9110 §8.8.3): another one for other bytes.
    pub etag: String,
}

/// The file at a path below `/console/`. A path that is none, and in none of the folders of files, is the
/// address of a view, and gets the page. `None`: there is no such file.
pub fn asset(path: &str) -> Option<Asset> {
    let is_of_file = FOLDERS.iter().any(|folder| path.starts_with(folder));
    let path = if is_of_file || Files::get(path).is_some() { path } else { PAGE };
    let file = Files::get(path)?;
    let hash = file.metadata.sha256_hash();
    let etag = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Some(Asset { bytes: file.data, content_type: content_type(path), etag: format!("\"{etag}\"") })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" | "webmanifest" => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest size of all files together, in bytes.
    const BYTES_MAX: usize = 300 << 10;

    #[test]
    fn files_and_views_are_found() {
        let page = asset("index.html").unwrap();
        assert_eq!(page.content_type, "text/html; charset=utf-8");
        for view in ["", "default/queues", "default/queues/mail.eu", "../Cargo.toml"] {
            assert_eq!(asset(view).unwrap().etag, page.etag, "{view}");
        }
        assert_eq!(asset("js/main.js").unwrap().content_type, "text/javascript; charset=utf-8");
        for nothing in ["js/nothing.js", "css/", "vendor/../../Cargo.toml"] {
            assert!(asset(nothing).is_none(), "{nothing}");
        }
    }

    #[test]
    fn all_files_together_are_small() {
        let sizes = Files::iter().map(|path| Files::get(&path).map_or(0, |file| file.data.len()));
        assert!(sizes.sum::<usize>() <= BYTES_MAX);
    }
}

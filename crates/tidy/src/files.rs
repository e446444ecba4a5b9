//! The text files of the repository.

use std::fs;
use std::io;
use std::path::Path;

/// Folders of what is built, downloaded, or generated: by fuzzing, or from the contract. Hidden folders are
/// skipped too.
const SKIPPED: [&str; 8] =
    ["target", "__pycache__", "node_modules", "sluice-data", "corpus", "artifacts", "generated", "_proto"];

/// The language of a file, as far as the rules tell languages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// Comments begin with `//`.
    Rust,
    /// Comments begin with `//`.
    Proto,
    /// All text is documentation.
    Markdown,
    /// Comments begin with `#`: shell, Python, TOML.
    Script,
}

/// A file with its text.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// The path from the root of the repository, with `/`.
    pub path: String,
    /// Language of the file.
    pub language: Language,
    /// The whole text.
    pub text: String,
}

/// Every file under `root` whose language the rules know, in the order of their paths. What is built,
/// downloaded, hidden or a link is left out.
///
/// # Errors
///
/// A folder or file that cannot be read, or that is not UTF-8.
pub(crate) fn read_all(root: &Path) -> io::Result<Vec<TextFile>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(root: &Path, folder: &str, files: &mut Vec<TextFile>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && is_source_folder(&name) {
            walk(root, &path, files)?;
        } else if kind.is_file() && (!name.contains('.') || language_of(&name, "").is_some()) {
            read_one(root, path, &name, files)?;
        }
    }
    Ok(())
}

fn read_one(root: &Path, path: String, name: &str, files: &mut Vec<TextFile>) -> io::Result<()> {
    let bytes = fs::read(root.join(&path))?;
    let first_line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let Some(language) = language_of(name, &String::from_utf8_lossy(first_line)) else { return Ok(()) };
    let text = String::from_utf8(bytes).map_err(|error| io::Error::other(format!("{path}: {error}")))?;
    files.push(TextFile { path, language, text });
    Ok(())
}

fn is_source_folder(name: &str) -> bool {
    name == ".ci" || !(name.starts_with('.') || SKIPPED.contains(&name))
}

/// The language by the extension of the name; without an extension, by the interpreter in the first line.
fn language_of(name: &str, first_line: &str) -> Option<Language> {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => Some(Language::Rust),
        Some("proto") => Some(Language::Proto),
        Some("md") => Some(Language::Markdown),
        Some("sh" | "py" | "toml") => Some(Language::Script),
        Some(_) => None,
        None => first_line.starts_with("#!").then_some(Language::Script),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_follows_from_extension_or_interpreter() {
        assert_eq!(language_of("lib.rs", ""), Some(Language::Rust));
        assert_eq!(language_of("api.md", ""), Some(Language::Markdown));
        assert_eq!(language_of("fuzz", "#!/usr/bin/env bash"), Some(Language::Script));
        assert_eq!(language_of("seed", "some bytes"), None);
        assert_eq!(language_of("fixture.bin", "#!"), None);
    }

    #[test]
    fn hidden_and_built_folders_are_left_out() {
        assert!(is_source_folder("crates"));
        assert!(is_source_folder(".ci"));
        assert!(!is_source_folder(".git"));
        assert!(!is_source_folder("target") && !is_source_folder("generated"));
    }
}

//! The modules of a crate, followed from `lib.rs` or `main.rs` by their `mod` declarations.

use std::collections::HashMap;
use std::path::{Component, Path};

use syn::{Item, ItemMod};

use crate::files::TextFile;
use crate::source::{Source, needs_test};

/// The names from the crate's root to a module; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// A file that is a module of the crate.
pub(crate) struct Module {
    /// Where it stands.
    pub path: ModulePath,
    /// Its parsed text.
    pub source: Source,
}

/// The parsed files below `root_file` (`crates/x/src/lib.rs`), parents before their children.
///
/// # Errors
///
/// A file that is not Rust, or a declaration whose file is missing.
pub(crate) fn read(root_file: &str, files: &HashMap<&str, &TextFile>) -> Result<Vec<Module>, String> {
    let mut modules = Vec::new();
    let mut open = vec![Declared { path: Vec::new(), file: root_file.to_owned(), is_test: false }];
    while let Some(next) = open.pop() {
        let text = files.get(next.file.as_str()).ok_or(format!("{} is not a file", next.file))?;
        let source = Source::parse(&next.file, &text.text, next.is_test)?;
        declared(&source.whole.items, &next, files, &mut open)?;
        modules.push(Module { path: next.path, source });
    }
    Ok(modules)
}

/// A module that was declared, and its file.
struct Declared {
    path: ModulePath,
    file: String,
    is_test: bool,
}

/// Adds the modules that `items` declare in files of their own.
fn declared(
    items: &[Item],
    parent: &Declared,
    files: &HashMap<&str, &TextFile>,
    open: &mut Vec<Declared>,
) -> Result<(), String> {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let mut path = parent.path.clone();
        path.push(module.ident.to_string());
        let is_test = parent.is_test || needs_test(&module.attrs);
        match &module.content {
            Some((_, items)) => {
                let inline = Declared { path, file: parent.file.clone(), is_test };
                declared(items, &inline, files, open)?;
            }
            None => open.push(Declared { file: file_of(module, &path, &parent.file, files)?, path, is_test }),
        }
    }
    Ok(())
}

/// The file of a declared module: by its `#[path]`, or by its name beside or below the declaring file.
fn file_of(
    module: &ItemMod,
    path: &[String],
    declaring: &str,
    files: &HashMap<&str, &TextFile>,
) -> Result<String, String> {
    let folder = Path::new(declaring).parent().unwrap_or(Path::new(""));
    let candidates = match path_attribute(module) {
        Some(relative) => vec![normalised(&folder.join(relative))],
        None => {
            let folder = source_folder(declaring, path);
            vec![format!("{folder}/{}.rs", module.ident), format!("{folder}/{}/mod.rs", module.ident)]
        }
    };
    let found = candidates.iter().find(|file| files.contains_key(file.as_str()));
    found.cloned().ok_or(format!("{declaring}: the file of `mod {}` is not found", module.ident))
}

/// The folder in which the files of the children of `path`'s parent lie: the `src` of the declaring file, and
/// the names down to the parent. Files with `#[path]` are assumed to declare nothing further.
fn source_folder(declaring: &str, path: &[String]) -> String {
    let source = declaring.split_once("/src/").map_or(declaring, |(before, _)| before);
    let mut folder = format!("{source}/src");
    for name in &path[..path.len() - 1] {
        folder.push('/');
        folder.push_str(name);
    }
    folder
}

fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// The path without `..`.
fn normalised(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Language;

    fn read_texts(texts: &[(&str, &str)]) -> Result<Vec<(String, String, bool)>, String> {
        let files: Vec<TextFile> = texts
            .iter()
            .map(|(path, text)| TextFile {
                path: (*path).into(),
                language: Language::Rust,
                text: (*text).into(),
            })
            .collect();
        let by_path = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let modules = read("crates/x/src/lib.rs", &by_path)?;
        Ok(modules
            .into_iter()
            .map(|module| {
                (module.path.join("::"), module.source.path, module.source.product.items.is_empty())
            })
            .collect())
    }

    #[test]
    fn modules_are_found_beside_and_below() {
        let modules = read_texts(&[
            ("crates/x/src/lib.rs", "mod a;"),
            ("crates/x/src/a/mod.rs", "mod b;"),
            ("crates/x/src/a/b.rs", "struct B;"),
        ]);
        let paths: Vec<String> = modules.unwrap().into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, ["", "a", "a::b"]);
    }

    #[test]
    fn what_a_test_module_declares_is_test() {
        let modules = read_texts(&[
            ("crates/x/src/lib.rs", "#[cfg(test)] mod tests;"),
            ("crates/x/src/tests.rs", "mod deep;"),
            ("crates/x/src/tests/deep.rs", "fn f() {}"),
        ]);
        assert!(modules.unwrap().into_iter().all(|(.., is_empty)| is_empty));
    }

    #[test]
    fn a_path_attribute_names_the_file() {
        let modules = read_texts(&[
            ("crates/x/src/lib.rs", "#[path = \"../shared/a.rs\"] mod a;"),
            ("crates/x/shared/a.rs", "struct A;"),
        ]);
        assert_eq!(modules.unwrap()[1].1, "crates/x/shared/a.rs");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert!(read_texts(&[("crates/x/src/lib.rs", "mod a;")]).is_err());
    }
}

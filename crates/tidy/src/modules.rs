//! The modules of a crate, followed from its root file (`lib.rs`, `main.rs`, that of a test) by their `mod`
//! declarations.

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
    let is_test = !root_file.contains("/src/");
    let root = Declared { path: Vec::new(), file: root_file.to_owned(), folder: parent(root_file), is_test };
    let mut open = vec![root];
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
    /// The folder in which the files of its children lie.
    folder: String,
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
                let folder = format!("{}/{}", parent.folder, module.ident);
                let inline = Declared { path, file: parent.file.clone(), folder, is_test };
                declared(items, &inline, files, open)?;
            }
            None => {
                let (file, folder) = file_of(module, parent, files)?;
                open.push(Declared { path, file, folder, is_test });
            }
        }
    }
    Ok(())
}

/// The file of a declared module, by its `#[path]`, or by its name in the folder of the declaring module, and
/// the folder of its own children.
fn file_of(
    module: &ItemMod,
    declaring: &Declared,
    files: &HashMap<&str, &TextFile>,
) -> Result<(String, String), String> {
    let candidates = match path_attribute(module) {
        Some(relative) => {
            let file = beside(&declaring.file, &relative);
            vec![(file.clone(), parent(&file))]
        }
        None => {
            let folder = format!("{}/{}", declaring.folder, module.ident);
            vec![(format!("{folder}.rs"), folder.clone()), (format!("{folder}/mod.rs"), folder)]
        }
    };
    let found = candidates.into_iter().find(|(file, _)| files.contains_key(file.as_str()));
    found.ok_or(format!("{}: the file of `mod {}` is not found", declaring.file, module.ident))
}

/// The folder of a file.
fn parent(file: &str) -> String {
    beside(file, "")
}

/// The path of a file, given relative to the folder of another.
pub(crate) fn beside(file: &str, relative: &str) -> String {
    normalised(&Path::new(file).parent().unwrap_or(Path::new("")).join(relative))
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
        read_texts_from("crates/x/src/lib.rs", texts)
    }

    fn read_texts_from(root: &str, texts: &[(&str, &str)]) -> Result<Vec<(String, String, bool)>, String> {
        let files: Vec<TextFile> = texts
            .iter()
            .map(|(path, text)| TextFile {
                path: (*path).into(),
                language: Language::Rust,
                text: (*text).into(),
            })
            .collect();
        let by_path = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let modules = read(root, &by_path)?;
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
    fn roots_of_tests_have_their_modules_beside_them() {
        let modules = read_texts_from(
            "crates/x/tests/all.rs",
            &[
                ("crates/x/tests/all.rs", "mod common; mod inner { mod deep; }"),
                ("crates/x/tests/common/mod.rs", ""),
                ("crates/x/tests/inner/deep.rs", ""),
            ],
        );
        let mut files: Vec<String> = modules.unwrap().into_iter().map(|(_, file, _)| file).collect();
        files.sort();
        assert_eq!(
            files,
            ["crates/x/tests/all.rs", "crates/x/tests/common/mod.rs", "crates/x/tests/inner/deep.rs"]
        );
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert!(read_texts(&[("crates/x/src/lib.rs", "mod a;")]).is_err());
    }
}

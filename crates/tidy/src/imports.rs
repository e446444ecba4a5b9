//! The imports of a module as they are written: `use` declarations, and paths of two or more names in code.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

use crate::modules::{Module, ModulePath};

/// One name that a module takes from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The names of the path, as written: `crate`, `super` and `self` are not resolved.
    pub path: Vec<String>,
    /// The name under which a `use` brings it into the module; `None` for a path in code, `*` for a glob.
    pub alias: Option<String>,
    /// True when it is a `use` with a visibility: other modules reach the name through this module.
    pub is_reexport: bool,
    /// The line, from 1.
    pub line: usize,
}

/// Definitions and imports of one module, in a file or inline, apart from tests.
#[derive(Debug)]
pub(crate) struct ModuleImports {
    /// Where the module stands.
    pub path: ModulePath,
    /// The file.
    pub file: String,
    /// Its imports.
    pub imports: Vec<Import>,
    /// The functions that it defines.
    pub functions: Vec<String>,
    /// The other items that it defines: types, traits, constants, macros.
    pub types: Vec<String>,
}

/// The imports of a file's module and of the modules inside it.
pub(crate) fn collect(module: &Module) -> Vec<ModuleImports> {
    let mut all = Vec::new();
    collect_items(&module.source.product.items, module.path.clone(), &module.source.path, &mut all);
    all
}

fn collect_items(items: &[Item], path: ModulePath, file: &str, all: &mut Vec<ModuleImports>) {
    let mut collector = Collector::default();
    for item in items {
        collector.visit_item(item);
        match item {
            Item::Fn(item) => collector.functions.push(item.sig.ident.to_string()),
            item => collector.types.extend(type_name(item)),
        }
    }
    let Collector { imports, functions, types, inline } = collector;
    for (name, items) in inline {
        let mut path = path.clone();
        path.push(name);
        collect_items(&items, path, file, all);
    }
    all.push(ModuleImports { path, file: file.to_owned(), imports, functions, types });
}

#[derive(Default)]
struct Collector {
    imports: Vec<Import>,
    functions: Vec<String>,
    types: Vec<String>,
    inline: Vec<(String, Vec<Item>)>,
}

impl Collector {
    fn add_code_path(&mut self, path: Vec<String>, line: usize) {
        if path.len() > 1 {
            self.imports.push(Import { path, alias: None, is_reexport: false, line });
        }
    }

    fn add_use(&mut self, tree: &UseTree, prefix: &[String], is_reexport: bool) {
        let (name, alias, span) = match tree {
            UseTree::Path(part) => {
                let prefix = joined(prefix, part.ident.to_string());
                return self.add_use(&part.tree, &prefix, is_reexport);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(tree, prefix, is_reexport));
            }
            UseTree::Name(name) => (Some(name.ident.to_string()), name.ident.to_string(), name.ident.span()),
            UseTree::Rename(name) => {
                (Some(name.ident.to_string()), name.rename.to_string(), name.ident.span())
            }
            UseTree::Glob(glob) => (None, "*".to_owned(), glob.star_token.spans[0]),
        };
        let (path, alias) = match name {
            Some(name) if name == "self" => (prefix.to_vec(), prefix.last().cloned().unwrap_or(alias)),
            Some(name) => (joined(prefix, name), alias),
            None => (prefix.to_vec(), alias),
        };
        self.imports.push(Import { path, alias: Some(alias), is_reexport, line: span.start().line });
    }

    /// Paths inside the arguments of a macro, which syn does not parse: names joined by `::`.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_code_path(std::mem::take(&mut path), line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.add_code_path(std::mem::take(&mut path), line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add_code_path(path, line);
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if let Some((_, items)) = &module.content {
            self.inline.push((module.ident.to_string(), items.clone()));
        }
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        self.add_use(&import.tree, &[], !matches!(import.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.add_code_path(names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.add_tokens(call.tokens.clone());
    }

    // `pub(in crate::a)` and attributes import nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn joined(prefix: &[String], name: String) -> Vec<String> {
    prefix.iter().cloned().chain([name]).collect()
}

fn type_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn paths(text: &str) -> Vec<String> {
        let source = Source::parse("a.rs", text, false).unwrap();
        let all = collect(&Module { path: vec!["a".into()], source });
        all.iter().flat_map(|module| &module.imports).map(|import| import.path.join("::")).collect()
    }

    #[test]
    fn use_trees_are_flattened() {
        assert_eq!(paths("use crate::{b::{self, C as D}, e::*};"), ["crate::b", "crate::b::C", "crate::e"]);
    }

    #[test]
    fn paths_in_code_types_and_macros_count() {
        assert_eq!(paths("fn f(a: super::A) { crate::b::g(); }"), ["super::A", "crate::b::g"]);
        assert_eq!(paths("fn f() { assert!(x == crate::b::C && d); }"), ["crate::b::C"]);
    }

    #[test]
    fn visibilities_attributes_and_tests_do_not_count() {
        assert_eq!(paths("pub(in crate::a) struct B; #[serde(with = \"crate::c\")] struct D;"), [""; 0]);
        assert_eq!(paths("#[cfg(test)] mod tests { use super::*; }"), [""; 0]);
    }

    #[test]
    fn an_inline_module_has_imports_of_its_own() {
        let source = Source::parse("a.rs", "mod b { use super::C; }", false).unwrap();
        let all = collect(&Module { path: vec!["a".into()], source });
        assert_eq!(all[0].path, ["a", "b"]);
        assert_eq!(all[0].imports[0].path, ["super", "C"]);
    }
}

//! A parsed Rust file, with the code that only tests see apart from the rest.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

/// Features that the product is never built with.
const TEST_FEATURES: [&str; 1] = ["fuzzing"];

/// A parsed Rust file.
pub(crate) struct Source {
    /// The path from the root of the repository.
    pub path: String,
    /// The lines of the text.
    pub lines: Vec<String>,
    /// All items.
    pub whole: syn::File,
    /// The items without those that only tests see. Empty in a file of tests.
    pub product: syn::File,
}

impl Source {
    /// Parses `text`. `is_test` says that the whole file belongs to tests.
    ///
    /// # Errors
    ///
    /// What syn says of text that is not Rust.
    pub(crate) fn parse(path: &str, text: &str, is_test: bool) -> Result<Source, String> {
        let whole = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        let mut product = whole.clone();
        if is_test || needs_test(&product.attrs) {
            product.items.clear();
        }
        strip_tests(&mut product.items);
        Ok(Source { path: path.to_owned(), lines: text.lines().map(str::to_owned).collect(), whole, product })
    }
}

/// True when the attributes leave the item out of the product: `#[test]`, `#[cfg(test)]` and the like.
pub(crate) fn needs_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let last = attribute.path().segments.last().map(|segment| segment.ident.to_string());
        match last.as_deref() {
            Some("test") => true,
            Some("cfg") => attribute.parse_args::<Meta>().is_ok_and(|meta| condition_needs_test(&meta)),
            _ => false,
        }
    })
}

/// True when a condition of `cfg` cannot hold in the product.
fn condition_needs_test(meta: &Meta) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(pair) => match &pair.value {
            syn::Expr::Lit(value) if pair.path.is_ident("feature") => match &value.lit {
                syn::Lit::Str(name) => TEST_FEATURES.contains(&name.value().as_str()),
                _ => false,
            },
            _ => false,
        },
        Meta::List(list) => {
            let Ok(conditions) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
                return false;
            };
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => conditions.iter().any(condition_needs_test),
                Some("any") => conditions.iter().all(condition_needs_test),
                _ => false,
            }
        }
    }
}

fn strip_tests(items: &mut Vec<Item>) {
    items.retain(|item| !needs_test(attributes(item)));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    strip_tests(items);
                }
            }
            Item::Impl(block) => block.items.retain(|item| !needs_test(impl_item_attributes(item))),
            Item::Trait(definition) => {
                definition.items.retain(|item| !needs_test(trait_item_attributes(item)))
            }
            _ => {}
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn impl_item_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        _ => &[],
    }
}

fn trait_item_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product_items(text: &str) -> usize {
        Source::parse("a.rs", text, false).unwrap().product.items.len()
    }

    #[test]
    fn what_only_tests_see_is_stripped() {
        assert_eq!(product_items("fn a() {}\n#[test]\nfn b() {}"), 1);
        assert_eq!(product_items("#[tokio::test]\nasync fn b() {}"), 0);
        assert_eq!(product_items("#[cfg(test)]\nmod tests {}"), 0);
        assert_eq!(product_items("#[cfg(all(test, unix))]\nmod tests;"), 0);
        assert_eq!(product_items("#[cfg(any(test, feature = \"fuzzing\"))]\nmod fuzzing;"), 0);
    }

    #[test]
    fn what_the_product_sees_stays() {
        assert_eq!(product_items("#[cfg(not(test))]\nmod a;"), 1);
        assert_eq!(product_items("#[cfg(any(test, unix))]\nmod a;"), 1);
        assert_eq!(product_items("#[cfg(feature = \"plant\")]\nmod a;"), 1);
    }

    #[test]
    fn items_inside_modules_and_impls_are_stripped() {
        let source =
            Source::parse("a.rs", "mod a { #[test] fn b() {} }\nimpl A { #[cfg(test)] fn c() {} }", false)
                .unwrap();
        let Item::Mod(module) = &source.product.items[0] else { panic!() };
        assert!(module.content.as_ref().unwrap().1.is_empty());
        let Item::Impl(block) = &source.product.items[1] else { panic!() };
        assert!(block.items.is_empty());
    }

    #[test]
    fn a_file_of_tests_has_no_product() {
        assert!(Source::parse("a.rs", "fn a() {}", true).unwrap().product.items.is_empty());
        assert_eq!(Source::parse("a.rs", "fn a() {}", true).unwrap().whole.items.len(), 1);
    }
}

//! No circles between the modules of a folder.
//!
//! Each module that has children is a folder. Its children are the nodes of a graph, each with all that is
//! below it, and so is the folder's own file (`mod.rs`, or `lib.rs` at the root). An import is an edge in one
//! folder: the one where the ways to the two modules part. Modules that reach each other over edges are a
//! circle, and every import inside it is a finding.
//!
//! Two imports are no edges, because they are how a folder is one thing in several files: the own file
//! re-exports from its children, and a child uses a type or constant that the own file defines, mostly to add
//! the methods of its concern. A child that calls a function of the own file is an edge. Code that only tests
//! see does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::Finding;
use crate::imports::{Import, ModuleImports};
use crate::modules::ModulePath;
use crate::resolve::Names;

/// The name of the rule.
pub(crate) const RULE: &str = "circle";

/// The node of a folder's own file.
const OWN_FILE: &str = "own-file";

/// The imports between two nodes of a folder.
type Edges<'a> = BTreeMap<(String, String), Vec<Site<'a>>>;

/// Where an import stands.
struct Site<'a> {
    file: &'a str,
    import: &'a Import,
}

/// The imports of a crate that are part of a circle: one finding for each pair of nodes and direction.
pub(crate) fn check(krate: &str, modules: &[ModuleImports]) -> Vec<Finding> {
    let names = Names::new(modules);
    let mut findings = Vec::new();
    for (folder, edges) in folders(modules, &names) {
        let place = [&[krate.to_owned()], folder.as_slice()].concat().join("/");
        let following = successors(&edges);
        for ((from, to), sites) in &edges {
            if let Some(back) = way(to, from, &following) {
                findings.push(finding(&place, from, to, &sites[0], &back));
            }
        }
    }
    findings
}

fn finding(place: &str, from: &str, to: &str, site: &Site<'_>, back: &[&str]) -> Finding {
    Finding {
        rule: RULE,
        subject: format!("{place}:{from}->{to}").replace(' ', "-"),
        file: site.file.to_owned(),
        line: site.import.line,
        advice: format!(
            "{from} imports {to} (`{}`) in {place}, and {} leads back: move what both need below both",
            site.import.path.join("::"),
            back.join(" -> "),
        ),
    }
}

/// The edges by folder.
fn folders<'a>(modules: &'a [ModuleImports], names: &Names<'_>) -> BTreeMap<ModulePath, Edges<'a>> {
    let mut folders: BTreeMap<ModulePath, Edges<'a>> = BTreeMap::new();
    for module in modules {
        for import in &module.imports {
            let Some(target) = names.target(&module.path, import) else { continue };
            let Some((folder, from, to)) = edge(&module.path, &target.module) else { continue };
            if from == OWN_FILE && import.is_reexport || to == OWN_FILE && target.is_type {
                continue;
            }
            let site = Site { file: &module.file, import };
            folders.entry(folder).or_default().entry((from, to)).or_default().push(site);
        }
    }
    folders
}

/// The folder in which the ways to two modules part, and its nodes towards each. `None` within one module.
fn edge(from: &[String], to: &[String]) -> Option<(ModulePath, String, String)> {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let node = |path: &[String]| path.get(shared).map_or(OWN_FILE, String::as_str).to_owned();
    let (a, b) = (node(from), node(to));
    (a != b).then(|| (from[..shared].to_vec(), a, b))
}

fn successors<'e>(edges: &'e Edges<'_>) -> BTreeMap<&'e str, BTreeSet<&'e str>> {
    let mut following: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        following.entry(from).or_default().insert(to);
    }
    following
}

/// The shortest way over edges, with both ends.
fn way<'e>(
    from: &'e str,
    to: &str,
    following: &BTreeMap<&'e str, BTreeSet<&'e str>>,
) -> Option<Vec<&'e str>> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        let last = way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        for &node in following.get(last).into_iter().flatten() {
            if seen.insert(node) {
                ways.push([way.as_slice(), &[node]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports;
    use crate::modules::Module;
    use crate::source::Source;

    fn subjects(texts: &[(&str, &str)]) -> Vec<String> {
        let modules: Vec<ModuleImports> = texts
            .iter()
            .flat_map(|(path, text)| {
                let path: ModulePath =
                    path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
                imports::collect(&Module { path, source: Source::parse("a.rs", text, false).unwrap() })
            })
            .collect();
        check("x", &modules).into_iter().map(|finding| finding.subject).collect()
    }

    #[test]
    fn imports_one_way_are_no_circle() {
        assert_eq!(subjects(&[("", ""), ("a", "use crate::b::B;"), ("b", "pub struct B;")]), [""; 0]);
    }

    #[test]
    fn imports_both_ways_are_a_circle() {
        let found = subjects(&[("", ""), ("a", "use crate::b::B;"), ("b", "fn f() { super::a::g() }")]);
        assert_eq!(found, ["x:a->b", "x:b->a"]);
    }

    #[test]
    fn folders_are_one_node_to_their_neighbours() {
        let found = subjects(&[
            ("", ""),
            ("a", ""),
            ("a::one", "use crate::b::B;"),
            ("a::two", "pub struct Two;"),
            ("b", "use crate::a::two::Two; pub struct B;"),
        ]);
        assert_eq!(found, ["x:a->b", "x:b->a"]);
    }

    #[test]
    fn a_circle_of_three_is_found() {
        let found = subjects(&[
            ("", ""),
            ("a", "use crate::b::B;"),
            ("b", "use crate::c::C;"),
            ("c", "use crate::a::A;"),
        ]);
        assert_eq!(found, ["x:a->b", "x:b->c", "x:c->a"]);
    }

    #[test]
    fn re_exports_lead_to_where_the_item_is_defined() {
        let found = subjects(&[
            ("", "pub use a::A; pub use b::*;"),
            ("a", "use crate::B; pub struct A;"),
            ("b", "use crate::A; pub struct B;"),
        ]);
        assert_eq!(found, ["x:a->b", "x:b->a"]);
    }

    #[test]
    fn a_child_may_use_the_types_of_its_folder() {
        let found =
            subjects(&[("", ""), ("a", "use b::B; struct A;"), ("a::b", "use super::A; pub struct B;")]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_child_that_calls_its_folder_is_a_circle_when_the_folder_uses_it() {
        let child = ("a::b", "use super::f; pub struct B;");
        assert_eq!(subjects(&[("", ""), ("a", "pub use b::B; fn f() {}"), child]), [""; 0]);
        let found = subjects(&[("", ""), ("a", "use b::B; fn f() {}"), child]);
        assert_eq!(found, ["x/a:b->own-file", "x/a:own-file->b"]);
    }
}

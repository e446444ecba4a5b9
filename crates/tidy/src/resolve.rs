//! To which module of the crate an import leads, through re-exports.

use std::collections::BTreeMap;

use crate::imports::{Import, ModuleImports};
use crate::modules::ModulePath;

/// Re-exports of re-exports that are followed; a longer chain ends where it has got to.
const CHAIN_MAX: usize = 8;

/// Where an import leads.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The module in which the item is defined, or the imported module itself.
    pub module: ModulePath,
    /// True when the item is a type, trait, constant or macro: neither a function nor a module.
    pub is_type: bool,
}

/// The names of a crate.
pub(crate) struct Names<'a> {
    modules: BTreeMap<&'a [String], &'a ModuleImports>,
}

impl<'a> Names<'a> {
    /// Indexes the modules of one crate.
    pub(crate) fn new(modules: &'a [ModuleImports]) -> Names<'a> {
        Names { modules: modules.iter().map(|module| (module.path.as_slice(), module)).collect() }
    }

    /// Where the imported item is defined. `None` when it is not of this crate.
    pub(crate) fn target(&self, from: &[String], import: &Import) -> Option<Target> {
        self.follow(from, &import.path, 0)
    }

    fn follow(&self, from: &[String], path: &[String], depth: usize) -> Option<Target> {
        let (mut at, rest) = self.start(from, path)?;
        for (index, name) in rest.iter().enumerate() {
            let mut child = at.clone();
            child.push(name.clone());
            if self.modules.contains_key(child.as_slice()) {
                at = child;
            } else {
                return Some(self.item(at, name, &rest[index + 1..], depth));
            }
        }
        Some(Target { module: at, is_type: false })
    }

    /// Where `name`, which is no module in `at`, is defined: there, or where a re-export leads.
    fn item(&self, at: ModulePath, name: &str, rest: &[String], depth: usize) -> Target {
        if let Some(target) = self.defined(&at, name).or_else(|| self.reexported(&at, name, rest, depth)) {
            return target;
        }
        Target { module: at, is_type: false }
    }

    fn defined(&self, at: &[String], name: &str) -> Option<Target> {
        let module = self.modules.get(at)?;
        let is_type = module.types.iter().any(|defined| defined == name);
        let is_here = is_type || module.functions.iter().any(|defined| defined == name);
        is_here.then(|| Target { module: at.to_vec(), is_type })
    }

    /// The module where a path begins, and the names after it.
    fn start<'p>(&self, from: &[String], path: &'p [String]) -> Option<(ModulePath, &'p [String])> {
        match path.first()?.as_str() {
            "crate" => Some((Vec::new(), &path[1..])),
            "self" => Some((from.to_vec(), &path[1..])),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                Some((from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..]))
            }
            first => {
                let child: ModulePath = from.iter().cloned().chain([first.to_owned()]).collect();
                self.modules.contains_key(child.as_slice()).then(|| (child, &path[1..]))
            }
        }
    }

    /// Where `name` leads by a `use` in `at`.
    fn reexported(&self, at: &[String], name: &str, rest: &[String], depth: usize) -> Option<Target> {
        let module = self.modules.get(at).filter(|_| depth < CHAIN_MAX)?;
        let named = |import: &&Import| import.alias.as_deref() == Some(name);
        if let Some(import) = module.imports.iter().find(named) {
            let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
            return self.follow(at, &path, depth + 1);
        }
        let globs = module.imports.iter().filter(|import| import.alias.as_deref() == Some("*"));
        globs.filter_map(|glob| self.follow(at, &glob.path, depth + 1)).find_map(|source| {
            self.defined(&source.module, name)
                .or_else(|| self.reexported(&source.module, name, rest, depth + 1))
        })
    }
}

//! The root keys of the encryption at rest: there, and those that the data need.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sluice_journal::{KeyId, RootKeys};

use super::finding::{Finding, Level};
use crate::config::Config;
use crate::root_keys::RootKeyStore;

const CHECK: &str = "root_key";
/// Permission of others than the owner to read.
const OTHERS_READ: u32 = 0o044;

/// The findings about the root keys of a configuration. A command that gives them is run, as at a start.
pub(super) fn check(config: &Config) -> Vec<Finding> {
    let store = RootKeyStore::new(&config.key_source, &config.data_dir);
    let needed = match sluice_node::keys::needed(&config.data_dir) {
        Ok(needed) => needed,
        Err(error) => return vec![Finding::told(CHECK, Level::Problem, &error.to_string())],
    };
    if config.no_encryption && needed.is_empty() {
        return vec![Finding::skipped(CHECK, "none: data are not encrypted (`no_encryption`)")];
    }
    let place = store.place();
    let mut found = vec![judge(&place, store.read(), &needed)];
    found.extend(read_by_others(Path::new(&place)));
    found
}

fn judge(place: &str, read: Result<Option<RootKeys>, String>, needed: &[KeyId]) -> Finding {
    let roots = match read {
        Err(error) => return Finding::told(CHECK, Level::Problem, &error),
        Ok(None) if needed.is_empty() => {
            return Finding::ok(CHECK, format!("the first start makes one in {place}"));
        }
        Ok(roots) => roots.unwrap_or_default(),
    };
    let missing: Vec<String> =
        needed.iter().filter(|id| roots.get(**id).is_none()).map(KeyId::to_string).collect();
    if missing.is_empty() {
        return Finding::ok(CHECK, format!("in {place}; keep a copy of it elsewhere"));
    }
    Finding::problem(
        CHECK,
        format!("{place} lacks {}, without which the data cannot be read", missing.join(" and ")),
        "bring it back from its copy, or set `key_source` to its place",
    )
}

fn read_by_others(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.mode();
    let to_do = format!("chmod 600 {}", path.display());
    (mode & OTHERS_READ != 0)
        .then(|| Finding::warning(CHECK, format!("others than the owner may read {}", path.display()), to_do))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_that_data_need_have_to_be_there() {
        let key = "11".repeat(32);
        let roots = RootKeys::parse(&key).unwrap();
        let id = roots.current().unwrap().id();
        let other = RootKeys::parse(&"22".repeat(32)).unwrap();
        assert_eq!(judge("k", Ok(None), &[]).level, Level::Ok);
        assert_eq!(judge("k", Ok(Some(roots)), &[id]).level, Level::Ok);
        assert_eq!(judge("k", Ok(None), &[id]).level, Level::Problem);
        let lacking = judge("k", Ok(Some(other)), &[id]);
        assert!(lacking.level == Level::Problem && lacking.seen.contains(&id.to_string()), "{lacking:?}");
        assert_eq!(judge("k", Err("unreadable: look".to_owned()), &[]).to_do.as_deref(), Some("look"));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o604)).unwrap();
        assert!(read_by_others(file.path()).is_some() && read_by_others(Path::new("/nowhere")).is_none());
    }
}

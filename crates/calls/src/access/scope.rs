//! Scopes: what a certificate or a token allows by itself, as a URI.
//!
//! `sluice://ns/<namespace>?perm=r|w|rw|observer|operator|admin`, where the namespace may be a pattern. `r`
//! receives and settles, `w` sends, `rw` does both and uses locks, the others are roles; in that namespace,
//! with `*` in all of them.

use std::fmt;

use super::pattern::Patterns;
use super::right::{Role, Roles};

const SCOPE: &str = "sluice://ns/";
const CLIENT: &str = "sluice://client/";
/// Longest name of an identity, in bytes.
const NAME_BYTES_MAX: usize = 128;
const PERMS: [(&str, &[Role]); 6] = [
    ("r", &[Role::Consumer]),
    ("w", &[Role::Producer]),
    ("rw", &[Role::Producer, Role::Consumer, Role::Coordinator]),
    ("observer", &[Role::Observer]),
    ("operator", &[Role::Operator]),
    ("admin", &[Role::Admin]),
];

/// One namespace, or a pattern of them, and what may be done there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    namespace: String,
    perm: &'static str,
    roles: Roles,
    patterns: Patterns,
}

impl Scope {
    /// A scope from its parts.
    ///
    /// # Errors
    /// Which part is wrong, and what would be right.
    pub fn new(namespace: &str, perm: &str) -> Result<Scope, String> {
        let (perm, roles) = PERMS.into_iter().find(|(name, _)| *name == perm).ok_or_else(|| {
            format!("{perm:?} is not a permission: expected r, w, rw, observer, operator or admin")
        })?;
        if let Some(c) = namespace.chars().find(|c| "?#/%".contains(*c)) {
            return Err(format!("the namespace {namespace:?} has the character {c:?}, which none has"));
        }
        let patterns =
            Patterns::new(&[namespace]).map_err(|(_, reason)| format!("the namespace: {reason}"))?;
        Ok(Scope { namespace: namespace.to_owned(), perm, roles: Roles::of(roles), patterns })
    }

    /// The scope, unless it would allow nothing: `$sys`, the server's own namespace, is looked at by those
    /// who have `*=admin`, and changed by nobody.
    ///
    /// # Errors
    /// What would be right instead.
    pub fn expect_useful(self) -> Result<Scope, String> {
        if self.namespace.starts_with('$') {
            return Err(format!(
                "a scope in namespace {} would allow nothing: the server alone changes it, and *=admin may look at it",
                self.namespace
            ));
        }
        Ok(self)
    }

    /// Reads the URI of a scope; `None`: it is that of something else.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_uri(uri: &str) -> Option<Result<Scope, String>> {
        let rest = uri.strip_prefix(SCOPE)?;
        let parts = rest.split_once("?perm=");
        let read = parts
            .ok_or_else(|| "expected sluice://ns/NAMESPACE?perm=r|w|rw|observer|operator|admin".to_owned());
        Some(
            read.and_then(|(namespace, perm)| Scope::new(namespace, perm))
                .map_err(|e| format!("{uri:?}: {e}")),
        )
    }

    pub(super) fn roles(&self) -> Roles {
        self.roles
    }

    pub(super) fn namespaces(&self) -> &Patterns {
        &self.patterns
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCOPE}{}?perm={}", self.namespace, self.perm)
    }
}

/// The URI in a certificate that names a client.
///
/// # Errors
/// What is wrong with the name.
pub fn client_uri(name: &str) -> Result<String, String> {
    check_name(name).map(|()| format!("{CLIENT}{name}"))
}

/// The name in such a URI.
pub(super) fn client_name(uri: &str) -> Option<&str> {
    uri.strip_prefix(CLIENT).filter(|name| check_name(name).is_ok())
}

/// Names of tokens and of the clients for which we make certificates.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(plain) {
        return Err(format!(
            "{name:?} is not a name: expected 1 to {NAME_BYTES_MAX} letters, digits, and '.', '-', '_', '@', not with \
             '.' first"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Right;

    #[test]
    fn a_scope_reads_as_it_is_written() {
        for uri in ["sluice://ns/shop?perm=r", "sluice://ns/*?perm=admin", "sluice://ns/team-*?perm=rw"] {
            assert_eq!(Scope::from_uri(uri).unwrap().unwrap().to_string(), uri);
        }
        let scope = Scope::new("shop", "rw").unwrap();
        assert!(scope.roles().allow(Right::Send) && scope.roles().allow(Right::Receive));
        assert!(!scope.roles().allow(Right::Operate));
    }

    #[test]
    fn what_is_almost_a_scope_is_an_error_and_not_something_else() {
        for bad in
            ["sluice://ns/shop", "sluice://ns/shop?perm=x", "sluice://ns/?perm=r", "sluice://ns/a/b?perm=r"]
        {
            assert!(Scope::from_uri(bad).unwrap().is_err(), "{bad}");
        }
        assert!(Scope::from_uri("spiffe://prod/billing").is_none());
    }

    #[test]
    fn a_scope_in_the_servers_namespace_is_void() {
        for (namespace, is_useful) in [("$sys", false), ("$*", false), ("*", true), ("shop", true)] {
            let scope = Scope::new(namespace, "rw").unwrap();
            assert_eq!(scope.expect_useful().is_ok(), is_useful, "{namespace}");
        }
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(client_uri("billing@eu").unwrap(), "sluice://client/billing@eu");
        assert_eq!(client_name("sluice://client/billing@eu"), Some("billing@eu"));
        for bad in ["", "a b", "a/b", "../a", "ü"] {
            assert!(client_uri(bad).is_err(), "{bad}");
        }
    }
}

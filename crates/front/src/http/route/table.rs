//! Routes: the operations by the method and path that they have in HTTP.

use std::borrow::Cow;
use std::sync::LazyLock;

use http::Method;
use sluice_calls::operation::{HttpName, Operation, Root, Scope, Trait};

use crate::http::codec::query::percent_decode;

/// Every route; those on the hot way first, since they are looked through in this order.
static ROUTES: LazyLock<Vec<Route>> =
    LazyLock::new(|| Operation::ALL.iter().copied().map(Route::new).collect());

/// One route.
#[derive(Debug)]
struct Route {
    operation: Operation,
    /// GET stands for HEAD as well.
    method: Method,
    scope: Scope,
    http: &'static HttpName,
}

/// The names that a path holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Captured<'p> {
    /// `None`: the default namespace.
    pub(crate) namespace: Option<Cow<'p, str>>,
    /// The queue, message id, limit, schedule or namespace that the route is about; empty if about none.
    pub(crate) name: Cow<'p, str>,
}

/// The result of looking up a path.
#[derive(Debug)]
pub(crate) enum Found<'p> {
    /// An operation.
    Operation(Operation, Captured<'p>),
    /// The path exists, with these methods.
    OtherMethods(String),
    /// No such path.
    Nothing,
}

/// Longest path that any route has, in segments, prefix included.
const SEGMENTS_MAX: usize = 8;

/// Finds the operation of a request.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    // `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7).
    if path == "*" && method == Method::OPTIONS {
        return Found::OtherMethods("GET, HEAD, POST, PUT, PATCH, DELETE".to_owned());
    }
    let mut buffer = [""; SEGMENTS_MAX];
    let Some(segments) = split(path, &mut buffer) else { return Found::Nothing };
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    for route in ROUTES.iter() {
        if route.method == *wanted
            && let Some(captured) = route.captures(segments)
        {
            return Found::Operation(route.operation, captured);
        }
    }
    let methods: Vec<&str> = ROUTES
        .iter()
        .filter(|route| route.captures(segments).is_some())
        .flat_map(|route| {
            let get = route.method == Method::GET;
            [Some(route.method.as_str()), get.then_some("HEAD")].into_iter().flatten()
        })
        .collect();
    if methods.is_empty() { Found::Nothing } else { Found::OtherMethods(methods.join(", ")) }
}

/// Finds the operation of a POST, if it is one of the few that are called by the hundred thousand.
pub(crate) fn find_hot(path: &str) -> Option<(Operation, Captured<'_>)> {
    let mut buffer = [""; SEGMENTS_MAX];
    let segments = split(path, &mut buffer)?;
    let mut hot = ROUTES.iter().take_while(|route| route.operation.is(Trait::Hot));
    hot.find_map(|route| Some((route.operation, route.captures(segments)?)))
}

fn split<'p, 'b>(path: &'p str, buffer: &'b mut [&'p str; SEGMENTS_MAX]) -> Option<&'b [&'p str]> {
    let mut count = 0;
    for segment in path.strip_prefix('/')?.split('/') {
        *buffer.get_mut(count)? = segment;
        count += 1;
    }
    Some(&buffer[..count])
}

impl Route {
    fn new(operation: Operation) -> Route {
        let http = operation.http();
        let method = Method::from_bytes(http.method.as_str().as_bytes()).unwrap_or_default();
        Route { operation, method, scope: operation.scope(), http }
    }

    fn captures<'p>(&self, segments: &[&'p str]) -> Option<Captured<'p>> {
        match (self.http.root, self.scope, segments) {
            (Root::Root, _, rest) => self.tail(None, rest),
            (Root::V1, Scope::Namespaced, ["v1", "namespaces", namespace, rest @ ..]) if !rest.is_empty() => {
                self.tail(Some(namespace), rest)
            }
            (Root::V1, _, ["v1", rest @ ..]) => self.tail(None, rest),
            _ => None,
        }
    }

    fn tail<'p>(&self, namespace: Option<&'p str>, rest: &[&'p str]) -> Option<Captured<'p>> {
        if rest.len() != self.http.segments.len() {
            return None;
        }
        let mut name = Cow::Borrowed("");
        for (segment, found) in self.http.segments.iter().zip(rest) {
            if segment.starts_with('{') {
                name = percent_decode(found, false)?;
            } else if segment != found {
                return None;
            }
        }
        let namespace = match namespace {
            Some(namespace) => Some(percent_decode(namespace, false)?),
            None => None,
        };
        Some(Captured { namespace, name })
    }
}

/// The paths of an operation, as the API description writes them.
pub(crate) fn paths(operation: Operation) -> Vec<String> {
    let HttpName { root, segments, .. } = operation.http();
    let tail = segments.join("/");
    match (root, operation.scope()) {
        (Root::Root, _) => vec![format!("/{tail}")],
        (Root::V1, Scope::Namespaced) => {
            vec![format!("/v1/{tail}"), format!("/v1/namespaces/{{namespace}}/{tail}")]
        }
        (Root::V1, _) => vec![format!("/v1/{tail}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: Method, path: &str) -> Option<(Operation, Option<String>, String)> {
        match find(&method, path) {
            Found::Operation(operation, captured) => {
                Some((operation, captured.namespace.map(Cow::into_owned), captured.name.into_owned()))
            }
            _ => None,
        }
    }

    #[test]
    fn every_path_of_the_table_leads_to_its_route() {
        for route in ROUTES.iter() {
            for path in paths(route.operation) {
                let (operation, ..) = found(route.method.clone(), &path).unwrap();
                assert_eq!(operation, route.operation, "{} {path}", route.method);
            }
        }
    }

    #[test]
    fn names_are_captured_and_decoded() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found(Method::POST, "/v1/queues/a.b/messages"),
            Some((Operation::Send, None, "a.b".into()))
        );
        assert_eq!(
            found(Method::POST, "/v1/namespaces/n%2Fx/queues/%24q/messages"),
            Some((Operation::Send, some("n/x"), "$q".into()))
        );
        assert_eq!(
            found(Method::GET, "/v1/namespaces/queues"),
            Some((Operation::NamespaceShow, None, "queues".into()))
        );
        assert_eq!(
            found(Method::GET, "/v1/namespaces/namespaces/queues"),
            Some((Operation::QueueList, some("namespaces"), String::new()))
        );
        assert_eq!(found(Method::HEAD, "/healthz").unwrap().0, Operation::Health);
    }

    #[test]
    fn other_paths_and_methods_are_told_apart() {
        for path in [
            "/",
            "",
            "/v1",
            "/v1/",
            "/v1/queues/",
            "/v2/queues",
            "/v1/a/b/c/d/e/f/g/h/i",
            "v1/queues",
            "/V1/ack",
        ] {
            let other = !matches!(find(&Method::PUT, path), Found::Nothing) && path != "/v1/queues/";
            assert!(!other, "{path}");
        }
        let Found::OtherMethods(allow) = find(&Method::POST, "/v1/queues/a") else {
            panic!("no such method")
        };
        assert_eq!(allow, "GET, HEAD, PUT, PATCH, DELETE");
        assert!(matches!(find(&Method::GET, "/v1/queues/%ff"), Found::Nothing));
    }
}

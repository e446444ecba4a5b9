//! The one table of routes: matching, `Allow`, the API description and the metrics' labels all come from it.

use std::borrow::Cow;

use http::Method;

use super::query::percent_decode;

macro_rules! operations {
    ($($operation:ident $name:literal $method:ident $scope:ident [$($segment:literal)/ *];)*) => {
        /// What can be asked over HTTP.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Operation { $($operation),* }

        /// Every route there is; those on the hot way first, since they are looked through in this order.
        pub(crate) static ROUTES: &[Route] = &[$(Route {
            operation: Operation::$operation,
            name: $name,
            method: Method::$method,
            scope: Scope::$scope,
            segments: &[$($segment),*],
        }),*];
    };
}

operations! {
    Send "send" POST Namespaced ["queues" / "{queue}" / "messages"];
    Receive "receive" POST Namespaced ["queues" / "{queue}" / "receive"];
    Settle "settle" POST Namespaced ["settle"];
    Ack "ack" POST Namespaced ["ack"];
    Nack "nack" POST Namespaced ["nack"];
    Release "release" POST Namespaced ["release"];
    Reject "reject" POST Namespaced ["reject"];
    Extend "extend" POST Namespaced ["extend"];
    ReceiveMany "receive_many" POST Namespaced ["receive"];
    SendRaw "send_raw" POST Namespaced ["queues" / "{queue}" / "messages" / "raw"];
    ReceiveRaw "receive_raw" POST Namespaced ["queues" / "{queue}" / "receive" / "raw"];
    QueueList "queue_list" GET Namespaced ["queues"];
    QueueShow "queue_show" GET Namespaced ["queues" / "{queue}"];
    QueuePut "queue_put" PUT Namespaced ["queues" / "{queue}"];
    QueuePatch "queue_patch" PATCH Namespaced ["queues" / "{queue}"];
    QueueDelete "queue_delete" DELETE Namespaced ["queues" / "{queue}"];
    QueuePause "queue_pause" POST Namespaced ["queues" / "{queue}" / "pause"];
    QueueResume "queue_resume" POST Namespaced ["queues" / "{queue}" / "resume"];
    QueueClose "queue_close" POST Namespaced ["queues" / "{queue}" / "close"];
    QueueOpen "queue_open" POST Namespaced ["queues" / "{queue}" / "open"];
    QueuePurge "queue_purge" POST Namespaced ["queues" / "{queue}" / "purge"];
    MessageList "message_list" GET Namespaced ["queues" / "{queue}" / "messages"];
    MessagePeek "message_peek" GET Namespaced ["queues" / "{queue}" / "peek"];
    MessageShow "message_show" GET Namespaced ["messages" / "{id}"];
    ResultShow "result_show" GET Namespaced ["messages" / "{id}" / "result"];
    ResultRaw "result_raw" GET Namespaced ["messages" / "{id}" / "result" / "raw"];
    MessageCancel "message_cancel" POST Namespaced ["messages" / "{id}" / "cancel"];
    MessageHold "message_hold" POST Namespaced ["messages" / "{id}" / "hold"];
    MessageApprove "message_approve" POST Namespaced ["messages" / "{id}" / "approve"];
    MessageDeny "message_deny" POST Namespaced ["messages" / "{id}" / "deny"];
    MessageRetry "message_retry" POST Namespaced ["messages" / "{id}" / "retry"];
    MessageMove "message_move" POST Namespaced ["messages" / "{id}" / "move"];
    MessageChange "message_change" POST Namespaced ["messages" / "{id}" / "change"];
    BulkList "bulk_list" GET Namespaced ["bulk"];
    BulkStart "bulk_start" POST Namespaced ["bulk"];
    BulkShow "bulk_show" GET Namespaced ["bulk" / "{bulk}"];
    BulkCancel "bulk_cancel" DELETE Namespaced ["bulk" / "{bulk}"];
    DeadList "dead_list" GET Namespaced ["queues" / "{queue}" / "dead"];
    DeadRedrive "dead_redrive" POST Namespaced ["queues" / "{queue}" / "dead" / "redrive"];
    DeadRedriveEnd "dead_redrive_end" DELETE Namespaced ["queues" / "{queue}" / "dead" / "redrive"];
    DeadDelete "dead_delete" POST Namespaced ["queues" / "{queue}" / "dead" / "delete"];
    ConsumerList "consumer_list" GET Namespaced ["consumers"];
    ConsumerShow "consumer_show" GET Namespaced ["consumers" / "{consumer}"];
    ConsumerDetach "consumer_detach" DELETE Namespaced ["consumers" / "{consumer}"];
    LimitList "limit_list" GET Namespaced ["limits"];
    GroupSend "group_send" POST Namespaced ["groups"];
    GroupShow "group_show" GET Namespaced ["groups" / "{group}"];
    FlowShow "flow_show" GET Namespaced ["flows" / "{id}"];
    LimitShow "limit_show" GET Namespaced ["limits" / "{limit}"];
    LimitPut "limit_put" PUT Namespaced ["limits" / "{limit}"];
    ScheduleList "schedule_list" GET Namespaced ["schedules"];
    ScheduleShow "schedule_show" GET Namespaced ["schedules" / "{schedule}"];
    SchedulePut "schedule_put" PUT Namespaced ["schedules" / "{schedule}"];
    ScheduleDelete "schedule_delete" DELETE Namespaced ["schedules" / "{schedule}"];
    ScheduleNext "schedule_next" GET Namespaced ["schedules" / "{schedule}" / "next"];
    SchedulePause "schedule_pause" POST Namespaced ["schedules" / "{schedule}" / "pause"];
    ScheduleResume "schedule_resume" POST Namespaced ["schedules" / "{schedule}" / "resume"];
    ScheduleTrigger "schedule_trigger" POST Namespaced ["schedules" / "{schedule}" / "trigger"];
    LimitDelete "limit_delete" DELETE Namespaced ["limits" / "{limit}"];
    DefaultsList "defaults_list" GET Namespaced ["queue-defaults"];
    DefaultsShow "defaults_show" GET Namespaced ["queue-defaults" / "{pattern}"];
    DefaultsPut "defaults_put" PUT Namespaced ["queue-defaults" / "{pattern}"];
    DefaultsDelete "defaults_delete" DELETE Namespaced ["queue-defaults" / "{pattern}"];
    NamespaceList "namespace_list" GET Versioned ["namespaces"];
    NamespaceShow "namespace_show" GET Versioned ["namespaces" / "{namespace}"];
    NamespacePut "namespace_put" PUT Versioned ["namespaces" / "{namespace}"];
    NamespacePatch "namespace_patch" PATCH Versioned ["namespaces" / "{namespace}"];
    NamespaceDelete "namespace_delete" DELETE Versioned ["namespaces" / "{namespace}"];
    Status "status" GET Versioned ["status"];
    Backup "backup" GET Versioned ["admin" / "backup"];
    KeysShow "keys_show" GET Versioned ["admin" / "keys"];
    KeysRotate "keys_rotate" POST Versioned ["admin" / "keys" / "rotate"];
    Health "health" GET Root ["healthz"];
    Ready "ready" GET Root ["readyz"];
    Metrics "metrics" GET Root ["metrics"];
    OpenApi "openapi" GET Root ["openapi.json"];
    Docs "docs" GET Root ["docs"];
}

impl Operation {
    /// Whether it answers with messages or lists, which may take much memory until the client has read them. The others,
    /// settling and sending above all, are never refused for lack of it.
    pub(crate) fn answers_at_length(self) -> bool {
        use Operation as O;
        matches!(
            self,
            O::Receive
                | O::ReceiveMany
                | O::ReceiveRaw
                | O::QueueList
                | O::MessageList
                | O::MessagePeek
                | O::MessageShow
                | O::ResultShow
                | O::ResultRaw
                | O::DeadList
                | O::ConsumerList
                | O::ConsumerShow
                | O::LimitList
                | O::ScheduleList
                | O::ScheduleShow
                | O::LimitShow
                | O::DefaultsList
                | O::NamespaceList
        )
    }
}

/// Under which prefixes a route stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// `/v1` and `/v1/namespaces/{namespace}`.
    Namespaced,
    /// `/v1`.
    Versioned,
    /// None.
    Root,
}

/// One route.
#[derive(Debug)]
pub(crate) struct Route {
    /// What it does.
    pub(crate) operation: Operation,
    /// Its name in the API description and in metrics.
    pub(crate) name: &'static str,
    /// The method; GET stands for HEAD as well.
    pub(crate) method: Method,
    /// Its prefixes.
    pub(crate) scope: Scope,
    /// The path behind the prefix; at most one segment is a `{name}`.
    pub(crate) segments: &'static [&'static str],
}

/// The names that a path holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Captured<'p> {
    /// `None`: the default namespace.
    pub(crate) namespace: Option<Cow<'p, str>>,
    /// The queue, message id, limit, schedule or namespace that the route is about; empty if about none.
    pub(crate) name: Cow<'p, str>,
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found<'p> {
    /// A route, by its place in [`ROUTES`].
    Route(usize, Captured<'p>),
    /// The path exists, with these methods.
    OtherMethods(String),
    /// No such path.
    Nothing,
}

/// Longest path that any route has, in segments, prefix included.
const SEGMENTS_MAX: usize = 8;

/// Finds the route of a request.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    let mut buffer = [""; SEGMENTS_MAX];
    let Some(segments) = split(path, &mut buffer) else { return Found::Nothing };
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    for (at, route) in ROUTES.iter().enumerate() {
        if route.method == *wanted
            && let Some(captured) = route.captures(segments)
        {
            return Found::Route(at, captured);
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

fn split<'p, 'b>(path: &'p str, buffer: &'b mut [&'p str; SEGMENTS_MAX]) -> Option<&'b [&'p str]> {
    let mut count = 0;
    for segment in path.strip_prefix('/')?.split('/') {
        *buffer.get_mut(count)? = segment;
        count += 1;
    }
    Some(&buffer[..count])
}

impl Route {
    fn captures<'p>(&self, segments: &[&'p str]) -> Option<Captured<'p>> {
        match (self.scope, segments) {
            (Scope::Root, rest) => self.tail(None, rest),
            (Scope::Namespaced, ["v1", "namespaces", namespace, rest @ ..]) if !rest.is_empty() => {
                self.tail(Some(namespace), rest)
            }
            (Scope::Namespaced | Scope::Versioned, ["v1", rest @ ..]) => self.tail(None, rest),
            _ => None,
        }
    }

    fn tail<'p>(&self, namespace: Option<&'p str>, rest: &[&'p str]) -> Option<Captured<'p>> {
        if rest.len() != self.segments.len() {
            return None;
        }
        let mut name = Cow::Borrowed("");
        for (segment, found) in self.segments.iter().zip(rest) {
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

    /// Paths as the API description writes them.
    pub(crate) fn paths(&self) -> Vec<String> {
        let tail = self.segments.join("/");
        match self.scope {
            Scope::Namespaced => vec![format!("/v1/{tail}"), format!("/v1/namespaces/{{namespace}}/{tail}")],
            Scope::Versioned => vec![format!("/v1/{tail}")],
            Scope::Root => vec![format!("/{tail}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: Method, path: &str) -> Option<(Operation, Option<String>, String)> {
        match find(&method, path) {
            Found::Route(at, captured) => Some((
                ROUTES[at].operation,
                captured.namespace.map(Cow::into_owned),
                captured.name.into_owned(),
            )),
            _ => None,
        }
    }

    #[test]
    fn every_path_of_the_table_leads_to_its_route() {
        for route in ROUTES {
            for path in route.paths() {
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

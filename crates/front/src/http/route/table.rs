//! The one table of routes: matching, `Allow`, the API description and the metrics' labels all come from it.

use std::borrow::Cow;

use http::Method;
use sluice_calls::access::{Right, Target};

use crate::hot::permission::DEFAULT_NAMESPACE;
use crate::http::codec::query::percent_decode;
use crate::net::arrived::Destination;

macro_rules! operations {
    ($($operation:ident $name:literal $method:ident $scope:ident $right:ident [$($segment:literal)/ *];)*) => {
        /// What can be asked over HTTP.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Operation { $($operation),* }

        /// Every route there is; those on the hot way first, since they are looked through in this order.
        pub(crate) static ROUTES: &[Route] = &[$(Route {
            operation: Operation::$operation,
            name: $name,
            method: Method::$method,
            scope: Scope::$scope,
            right: Right::$right,
            segments: &[$($segment),*],
        }),*];
    };
}

operations! {
    Send "send" POST Namespaced Send ["queues" / "{queue}" / "messages"];
    Receive "receive" POST Namespaced Receive ["queues" / "{queue}" / "receive"];
    Settle "settle" POST Namespaced Receive ["settle"];
    Ack "ack" POST Namespaced Receive ["ack"];
    Nack "nack" POST Namespaced Receive ["nack"];
    Release "release" POST Namespaced Receive ["release"];
    Reject "reject" POST Namespaced Receive ["reject"];
    Extend "extend" POST Namespaced Receive ["extend"];
    ReceiveMany "receive_many" POST Namespaced Receive ["receive"];
    SendRaw "send_raw" POST Namespaced Send ["queues" / "{queue}" / "messages" / "raw"];
    ReceiveRaw "receive_raw" POST Namespaced Receive ["queues" / "{queue}" / "receive" / "raw"];
    QueueList "queue_list" GET Namespaced Observe ["queues"];
    QueueShow "queue_show" GET Namespaced Observe ["queues" / "{queue}"];
    QueuePut "queue_put" PUT Namespaced Operate ["queues" / "{queue}"];
    QueuePatch "queue_patch" PATCH Namespaced Operate ["queues" / "{queue}"];
    QueueDelete "queue_delete" DELETE Namespaced Operate ["queues" / "{queue}"];
    QueuePause "queue_pause" POST Namespaced Operate ["queues" / "{queue}" / "pause"];
    QueueResume "queue_resume" POST Namespaced Operate ["queues" / "{queue}" / "resume"];
    QueueClose "queue_close" POST Namespaced Operate ["queues" / "{queue}" / "close"];
    QueueOpen "queue_open" POST Namespaced Operate ["queues" / "{queue}" / "open"];
    QueuePurge "queue_purge" POST Namespaced Operate ["queues" / "{queue}" / "purge"];
    MessageList "message_list" GET Namespaced Observe ["queues" / "{queue}" / "messages"];
    MessagePeek "message_peek" GET Namespaced Observe ["queues" / "{queue}" / "peek"];
    Events "events" GET Namespaced Observe ["events"];
    QueueEvents "queue_events" GET Namespaced Observe ["queues" / "{queue}" / "events"];
    MessageShow "message_show" GET Namespaced Observe ["messages" / "{id}"];
    ResultShow "result_show" GET Namespaced Result ["messages" / "{id}" / "result"];
    ResultRaw "result_raw" GET Namespaced Result ["messages" / "{id}" / "result" / "raw"];
    MessageCancel "message_cancel" POST Namespaced Operate ["messages" / "{id}" / "cancel"];
    MessageHold "message_hold" POST Namespaced Operate ["messages" / "{id}" / "hold"];
    MessageApprove "message_approve" POST Namespaced Operate ["messages" / "{id}" / "approve"];
    MessageDeny "message_deny" POST Namespaced Operate ["messages" / "{id}" / "deny"];
    MessageRetry "message_retry" POST Namespaced Operate ["messages" / "{id}" / "retry"];
    MessageMove "message_move" POST Namespaced Operate ["messages" / "{id}" / "move"];
    MessageChange "message_change" POST Namespaced Operate ["messages" / "{id}" / "change"];
    BulkList "bulk_list" GET Namespaced Observe ["bulk"];
    BulkStart "bulk_start" POST Namespaced Operate ["bulk"];
    BulkShow "bulk_show" GET Namespaced Observe ["bulk" / "{bulk}"];
    BulkCancel "bulk_cancel" DELETE Namespaced Operate ["bulk" / "{bulk}"];
    DeadList "dead_list" GET Namespaced Observe ["queues" / "{queue}" / "dead"];
    DeadRedrive "dead_redrive" POST Namespaced Operate ["queues" / "{queue}" / "dead" / "redrive"];
    DeadRedriveEnd "dead_redrive_end" DELETE Namespaced Operate ["queues" / "{queue}" / "dead" / "redrive"];
    DeadDelete "dead_delete" POST Namespaced Operate ["queues" / "{queue}" / "dead" / "delete"];
    ConsumerList "consumer_list" GET Namespaced Observe ["consumers"];
    ConsumerShow "consumer_show" GET Namespaced Observe ["consumers" / "{consumer}"];
    ConsumerDetach "consumer_detach" DELETE Namespaced Operate ["consumers" / "{consumer}"];
    LimitList "limit_list" GET Namespaced Observe ["limits"];
    GroupSend "group_send" POST Namespaced Send ["groups"];
    GroupShow "group_show" GET Namespaced Result ["groups" / "{group}"];
    FlowShow "flow_show" GET Namespaced Result ["flows" / "{id}"];
    LimitShow "limit_show" GET Namespaced Observe ["limits" / "{limit}"];
    LimitPut "limit_put" PUT Namespaced Operate ["limits" / "{limit}"];
    ScheduleList "schedule_list" GET Namespaced Observe ["schedules"];
    ScheduleShow "schedule_show" GET Namespaced Observe ["schedules" / "{schedule}"];
    SchedulePut "schedule_put" PUT Namespaced Operate ["schedules" / "{schedule}"];
    ScheduleDelete "schedule_delete" DELETE Namespaced Operate ["schedules" / "{schedule}"];
    ScheduleNext "schedule_next" GET Namespaced Observe ["schedules" / "{schedule}" / "next"];
    SchedulePause "schedule_pause" POST Namespaced Operate ["schedules" / "{schedule}" / "pause"];
    ScheduleResume "schedule_resume" POST Namespaced Operate ["schedules" / "{schedule}" / "resume"];
    ScheduleTrigger "schedule_trigger" POST Namespaced Operate ["schedules" / "{schedule}" / "trigger"];
    LimitDelete "limit_delete" DELETE Namespaced Operate ["limits" / "{limit}"];
    DefaultsList "defaults_list" GET Namespaced Observe ["queue-defaults"];
    DefaultsShow "defaults_show" GET Namespaced Observe ["queue-defaults" / "{pattern}"];
    DefaultsPut "defaults_put" PUT Namespaced Operate ["queue-defaults" / "{pattern}"];
    DefaultsDelete "defaults_delete" DELETE Namespaced Operate ["queue-defaults" / "{pattern}"];
    NamespaceList "namespace_list" GET Versioned Open ["namespaces"];
    NamespaceShow "namespace_show" GET Versioned Observe ["namespaces" / "{namespace}"];
    NamespacePut "namespace_put" PUT Versioned Admin ["namespaces" / "{namespace}"];
    NamespacePatch "namespace_patch" PATCH Versioned Admin ["namespaces" / "{namespace}"];
    NamespaceDelete "namespace_delete" DELETE Versioned Admin ["namespaces" / "{namespace}"];
    Status "status" GET Versioned Observe ["status"];
    Backup "backup" GET Versioned Admin ["admin" / "backup"];
    KeysShow "keys_show" GET Versioned Admin ["admin" / "keys"];
    KeysRotate "keys_rotate" POST Versioned Admin ["admin" / "keys" / "rotate"];
    Health "health" GET Root Open ["healthz"];
    Ready "ready" GET Root Open ["readyz"];
    Metrics "metrics" GET Root Observe ["metrics"];
    OpenApi "openapi" GET Root Open ["openapi.json"];
    Docs "docs" GET Root Open ["docs"];
    TokenList "token_list" GET Versioned Admin ["tokens"];
    TokenCreate "token_create" POST Versioned Admin ["tokens"];
    TokenRevoke "token_revoke" DELETE Versioned Admin ["tokens" / "{token}"];
    Audit "audit" GET Versioned Admin ["admin" / "audit"];
    WhoAmI "whoami" GET Versioned Open ["whoami"];
}

impl Operation {
    /// Whether it is called by the hundred thousand. Their routes, which are all POST, stand first.
    fn is_hot(self) -> bool {
        use Operation as O;
        matches!(self, O::Send | O::Receive | O::Settle | O::Ack | O::Nack | O::Release | O::Reject)
    }

    /// Whether it answers with messages or lists, which may take much memory until the client has read them. The others,
    /// settling and sending above all, are never refused for lack of it.
    pub(crate) fn answers_at_length(self) -> bool {
        use Operation as O;
        matches!(
            self,
            O::Receive
                | O::ReceiveMany
                | O::ReceiveRaw
                | O::GroupShow
                | O::FlowShow
                | O::BulkList
                | O::Audit
                | O::OpenApi
                | O::Docs
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

    /// Whether its answer may be refused when it is made: it is long, and nothing has come of the request.
    pub(crate) fn only_looks(self) -> bool {
        let takes = matches!(self, Operation::Receive | Operation::ReceiveMany | Operation::ReceiveRaw);
        self.answers_at_length() && !takes
    }
}

impl Operation {
    /// Whether it makes less of what there is to do: such are the last to be refused.
    pub(crate) fn relieves(self) -> bool {
        use Operation as O;
        matches!(self, O::Settle | O::Ack | O::Nack | O::Release | O::Reject | O::Extend)
    }

    /// Whether which queues it is about is known only when its body is read or its message is found: its handler asks for
    /// each of them.
    fn finds_queues(self) -> bool {
        use Operation as O;
        self.relieves()
            || matches!(
                self,
                O::ReceiveMany
                    | O::QueueList
                    | O::MessageShow
                    | O::ResultShow
                    | O::ResultRaw
                    | O::MessageCancel
                    | O::MessageHold
                    | O::MessageApprove
                    | O::MessageDeny
                    | O::MessageRetry
                    | O::MessageMove
                    | O::MessageChange
                    | O::GroupSend
                    | O::GroupShow
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
    /// What it asks of its caller.
    pub(crate) right: Right,
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

/// The route at this place, as metrics and the audit log know it.
pub(crate) fn destination(at: usize) -> Destination {
    let route = &ROUTES[at];
    Destination { row: at, name: route.name, is_audited: route.is_audited() }
}

/// Longest path that any route has, in segments, prefix included.
const SEGMENTS_MAX: usize = 8;

/// Finds the route of a request.
pub(crate) fn find<'p>(method: &Method, path: &'p str) -> Found<'p> {
    // `OPTIONS *` asks about the server as a whole (RFC 9110 §9.3.7).
    if path == "*" && method == Method::OPTIONS {
        return Found::OtherMethods("GET, HEAD, POST, PUT, PATCH, DELETE".to_owned());
    }
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

/// Finds the route of a POST, if it is one of the few that are called by the hundred thousand.
pub(crate) fn find_hot(path: &str) -> Option<(usize, Captured<'_>)> {
    let mut buffer = [""; SEGMENTS_MAX];
    let segments = split(path, &mut buffer)?;
    let hot = ROUTES.iter().take_while(|route| route.operation.is_hot());
    hot.enumerate().find_map(|(at, route)| Some((at, route.captures(segments)?)))
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

    /// The namespace that a call of it is about, or in.
    pub(crate) fn namespace<'c>(&self, captured: &'c Captured<'_>) -> Option<&'c str> {
        match self.scope {
            Scope::Namespaced => Some(captured.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)),
            _ if self.segments.contains(&"{namespace}") => Some(&captured.name),
            _ => None,
        }
    }

    /// What a call of it is about, as far as its path tells.
    pub(crate) fn target<'c>(&self, captured: &'c Captured<'_>) -> Target<'c> {
        let Some(namespace) = self.namespace(captured) else { return Target::Server };
        match self.scope {
            Scope::Namespaced if self.segments.contains(&"{queue}") => {
                Target::Queue(namespace, &captured.name)
            }
            Scope::Namespaced if self.operation.finds_queues() => Target::SomeQueue(namespace),
            // Whoever has a namespace does not decide that there is one, nor how much it may hold.
            Scope::Versioned if self.right == Right::Admin => Target::Server,
            _ => Target::Namespace(namespace),
        }
    }

    /// Whether it changes something that those want to know who look after the server.
    pub(crate) fn is_audited(&self) -> bool {
        let changes = matches!(self.right, Right::Operate | Right::Admin) && self.method != Method::GET;
        changes || self.operation == Operation::Backup
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
    fn each_route_asks_for_what_it_does() {
        for route in ROUTES {
            let name = route.name;
            if route.method != Method::GET {
                let changes = [Right::Send, Right::Receive, Right::Operate, Right::Admin];
                assert!(changes.contains(&route.right), "{name} changes something for whoever may look");
            } else {
                assert!(!matches!(route.right, Right::Send | Right::Receive), "{name}");
            }
            assert_eq!(route.operation.relieves(), name != "receive_many" && relieves(route), "{name}");
            // Whoever may do it in one queue only must have no way into the others.
            let by_message = route.segments.iter().any(|segment| matches!(*segment, "{id}" | "{group}"));
            // A flow shows messages of several queues, so it asks for all of the namespace.
            let asks = route.operation.finds_queues() || name == "flow_show";
            assert!(!by_message || asks, "{name} is about a message of any queue");
        }
        let open = ROUTES.iter().filter(|route| route.right == Right::Open).map(|route| route.name);
        assert_eq!(
            open.collect::<Vec<_>>(),
            ["namespace_list", "health", "ready", "openapi", "docs", "whoami"],
            "those are for everybody, or filter by themselves"
        );
    }

    /// Settling and extending carry receipts and no queue.
    fn relieves(route: &Route) -> bool {
        route.right == Right::Receive && route.segments.len() == 1
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

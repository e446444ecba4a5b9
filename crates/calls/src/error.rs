//! The error of a call, before it is one of a protocol.

use std::fmt;

use schemars::{JsonSchema, json_schema};
use serde_json::{Map, Value, json};
use sluice_engine::Error;
use sluice_engine::error::{Blame, FieldValue};

use crate::access::{AccessError, Denied};
use crate::codes::TABLE;
use crate::fault::Fault;
use crate::schema::inline_schemas;

/// Time after which callers repeat a call that failed for a passing reason, in milliseconds.
const LATER_MS: u64 = 1_000;

/// An error that a call answers with: a code of [`crate::codes`], a sentence, and the values that it is
/// about.
#[derive(Clone, Debug)]
pub struct CallError {
    code: &'static str,
    message: String,
    details: Details,
    retry_after_ms: Option<u64>,
    blame: Blame,
}

/// The answer to a call that failed.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(rename = "Error", example = json!({
    "error": {
        "code": "queue_not_found", "message": "queue \"mial\" does not exist", "details": {"queue": "mial"},
    },
}))]
pub struct ErrorAnswer {
    /// The error.
    pub error: ErrorBody,
}

/// An error as answers have it.
#[derive(Clone, Debug, JsonSchema)]
pub struct ErrorBody {
    /// The stable code.
    pub code: ErrorCode,
    /// Description of the error, and of what would be right.
    pub message: String,
    /// The values that the error is about, by name.
    pub details: Map<String, Value>,
}

/// A code of [`crate::codes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode(pub &'static str);

inline_schemas! {
    ErrorCode: json_schema!({"type": "string", "enum": TABLE.iter().map(|row| row.code).collect::<Vec<_>>()});
}

/// One value that an error is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Detail {
    /// A text.
    Text(String),
    /// A number, in the unit that its name ends with.
    Number(u64),
    /// The words that would have been right.
    Words(Vec<&'static str>),
}

/// The detail as text: a list of words as JSON.
impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detail::Text(text) => f.write_str(text),
            Detail::Number(number) => number.fmt(f),
            Detail::Words(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                write!(f, "[{}]", quoted.join(","))
            }
        }
    }
}

/// The values that an error is about, by name, in the order in which they were added.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Details(Vec<(&'static str, Detail)>);

impl Details {
    /// Adds a text.
    pub fn text(&mut self, name: &'static str, value: &str) {
        self.0.push((name, Detail::Text(value.to_owned())));
    }

    /// Adds a number.
    pub fn number(&mut self, name: &'static str, value: u64) {
        self.0.push((name, Detail::Number(value)));
    }

    /// Adds the place of an operation, or replaces it.
    fn set_operation(&mut self, at: usize) {
        self.0.retain(|(name, _)| *name != "operation");
        self.number("operation", at as u64);
    }

    /// Adds the words that would have been right.
    pub fn words(&mut self, name: &'static str, words: Vec<&'static str>) {
        self.0.push((name, Detail::Words(words)));
    }

    /// The field that an error is in.
    fn field_mut(&mut self) -> Option<&mut String> {
        self.0.iter_mut().find_map(|(name, detail)| match detail {
            Detail::Text(text) if *name == "field" => Some(text),
            _ => None,
        })
    }

    /// The values, by name.
    pub fn iter(&self) -> impl Iterator<Item = &(&'static str, Detail)> {
        self.0.iter()
    }

    /// The values of an error of the engine.
    pub fn of(error: &Error) -> Details {
        let mut details = Details::default();
        error.fields(|name, value| match value {
            FieldValue::Text("") if name == "field" => {}
            FieldValue::Text(text) => details.text(name, text),
            FieldValue::Number(number) => details.number(name, number),
        });
        details
    }
}

impl CallError {
    /// An error that the caller has to mend. `code` is one of [`crate::codes`].
    pub fn new(code: &'static str, message: impl Into<String>) -> CallError {
        CallError {
            code,
            message: message.into(),
            details: Details::default(),
            retry_after_ms: None,
            blame: Blame::Caller,
        }
    }

    /// Adds details.
    pub fn with(mut self, add: impl FnOnce(&mut Details)) -> CallError {
        self.details = Details::default();
        add(&mut self.details);
        self
    }

    /// Adds the address of the leader to an error that names one, if `address_of` its number knows it.
    pub fn with_address(mut self, address_of: impl FnOnce(u64) -> Option<String>) -> CallError {
        let leader = match self.details.iter().next() {
            Some(("leader", Detail::Number(leader))) => Some(*leader),
            _ => None,
        };
        if let Some(address) = leader.and_then(address_of) {
            self.details.text("address", &address);
        }
        self
    }

    /// Adds the place of the operation of a transaction that is to blame, and its name, to message and field.
    pub(crate) fn at_operation(mut self, at: usize, name: &str) -> CallError {
        let place = format!("operations[{at}].{name}");
        if !self.message.starts_with("operations[") {
            let field = self.details.field_mut();
            let has_field = field.is_some();
            let join = |field: &str| if field.starts_with('[') { "" } else { "." };
            if let Some(field) = field {
                let is_named = self.message.starts_with(field.as_str());
                let between = if is_named { join(field) } else { ": " };
                self.message.insert_str(0, &format!("{place}{between}"));
                *field = format!("{place}{}{field}", join(field));
            }
            if !has_field {
                self.message.insert_str(0, &format!("{place}: "));
            }
        }
        self.details.set_operation(at);
        self
    }

    /// Adds the number of the operation of a transaction that the message names, if it names one. `name_of`:
    /// the name of the operation as the request has it.
    pub fn of_operation<'n>(mut self, name_of: impl FnOnce(usize) -> Option<&'n str>) -> CallError {
        let Some((at, rest)) = self.message.strip_prefix("operations[").and_then(|rest| rest.split_once(']'))
        else {
            return self;
        };
        let Ok(at) = at.parse::<usize>() else { return self };
        let named = rest.strip_prefix('.').map(|rest| rest.split(['.', ':', '[']).next().unwrap_or_default());
        if let (Some(named), Some(name)) = (named, name_of(at))
            && named != name
        {
            let (from, to) = (format!("operations[{at}].{named}"), format!("operations[{at}].{name}"));
            self.message = self.message.replacen(&from, &to, 1);
            if let Some(field) = self.details.field_mut() {
                *field = field.replacen(&from, &to, 1);
            }
        }
        self.details.set_operation(at);
        self
    }

    /// Replaces the numbers of operations of a transaction that message, field and reason name by their
    /// places.
    pub(crate) fn at_place(mut self, place: impl Fn(usize) -> usize) -> CallError {
        self.message = numbered(&self.message, &place);
        for (name, detail) in &mut self.details.0 {
            match (*name, detail) {
                ("field" | "reason", Detail::Text(text)) => *text = numbered(text, &place),
                ("operation", Detail::Number(at)) => *at = place(*at as usize) as u64,
                _ => {}
            }
        }
        self
    }

    /// Names the field as the request has it, if the error is in the one that the engine names so.
    pub(crate) fn of_field(mut self, engines: &str, requests: &str) -> CallError {
        if let Some(field) = self.details.field_mut()
            && field == engines
        {
            requests.clone_into(field);
            if self.message.starts_with(engines) {
                self.message.replace_range(..engines.len(), requests);
            }
        }
        self
    }

    /// Names the namespace that the error is about, one of several.
    pub(crate) fn of_namespace(mut self, namespace: &str) -> CallError {
        self.message.insert_str(0, &format!("namespace {namespace:?}: "));
        self.details.text("namespace", namespace);
        self
    }

    /// Names the operation of a transaction by whose `namespace` the error came.
    pub(crate) fn at_namespace(mut self, at: usize) -> CallError {
        self.message.insert_str(0, &format!("operations[{at}].namespace: "));
        self.details.set_operation(at);
        self
    }

    /// A body of more than `limit` bytes.
    pub fn body_too_large(limit: usize) -> CallError {
        CallError::new(
            "body_too_large",
            format!("the body of this request is too large: it may have {limit} bytes"),
        )
        .with(|details| details.number("limit", limit as u64))
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The message: what went wrong and what would be right.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The values that the error is about.
    pub fn details(&self) -> &Details {
        &self.details
    }

    /// Milliseconds after which the call may be repeated; `None`: repeating it does not help.
    pub fn retry_after_ms(&self) -> Option<u64> {
        self.retry_after_ms
    }

    /// True if the caller is not authenticated or lacks a right.
    pub fn is_denial(&self) -> bool {
        matches!(self.code, "unauthenticated" | "forbidden" | "approval_needed")
    }

    /// True for an error of the server, which its operator has to know.
    pub fn is_ours(&self) -> bool {
        // Pushing back is normal work, brought about by callers, and shows in the metrics. So is what a
        // change of the leader cuts; where a journal has failed, that is logged by itself.
        let is_normal = matches!(
            self.code,
            "overloaded"
                | "queue_full"
                | "quota_exceeded"
                | "limit_exceeded"
                | "shutting_down"
                | "not_leader"
                | "no_leader"
                | "in_doubt"
                | "outcome_unknown"
        );
        self.blame != Blame::Caller && !is_normal
    }
}

impl CallError {
    /// The same, with the name of the namespace in place of its number: a namespace that is deleted under a
    /// call is known by its number alone.
    pub(crate) fn naming(self, namespace: &str) -> CallError {
        if self.code == "namespace_not_found" && self.message.contains("\"#") {
            return Error::NamespaceNotFound { namespace: namespace.to_owned() }.into();
        }
        self
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        CallError {
            code: error.code(),
            message: error.to_string(),
            details: Details::of(&error),
            retry_after_ms: retry_after_ms(&error),
            blame: error.blame(),
        }
    }
}

impl From<Denied> for CallError {
    fn from(denied: Denied) -> Self {
        let Denied { code, message, retry_after_ms } = denied;
        let error = CallError::new(code, message);
        match retry_after_ms {
            None => error,
            Some(ms) => {
                CallError { retry_after_ms, ..error.with(|details| details.number("retry_after_ms", ms)) }
            }
        }
    }
}

impl From<AccessError> for CallError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Own(code, message) => CallError::new(code, message),
            AccessError::Engine(error) => error.into(),
        }
    }
}

impl From<Box<Fault>> for CallError {
    fn from(fault: Box<Fault>) -> Self {
        let Fault { code, field, reason, allowed, engine } = *fault;
        let prefix = if field.is_empty() { String::new() } else { format!("{field}: ") };
        let mut error = match engine {
            Some(error) => CallError::from(error),
            None => CallError::new(code, reason).with(|details| {
                if !field.is_empty() {
                    details.text("field", &field);
                }
                if !allowed.is_empty() {
                    details.words("allowed", allowed);
                }
            }),
        };
        error.message.insert_str(0, &prefix);
        error
    }
}

/// The text with other numbers of operations.
fn numbered(text: &str, place: impl Fn(usize) -> usize) -> String {
    const OPERATION: &str = "operations[";
    let mut pieces = text.split(OPERATION);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(OPERATION);
        let number = piece.split_once(']').and_then(|(at, rest)| Some((at.parse().ok()?, rest)));
        match number {
            Some((at, rest)) => out.push_str(&format!("{}]{rest}", place(at))),
            None => out.push_str(piece),
        }
    }
    out
}

fn retry_after_ms(error: &Error) -> Option<u64> {
    match error {
        Error::Overloaded { retry_after_ms, .. } => Some(*retry_after_ms),
        Error::ShuttingDown {}
        | Error::JournalFailed { .. }
        | Error::OutcomeUnknown {}
        | Error::NotLeader { .. }
        | Error::InDoubt { .. }
        | Error::NoLeader {}
        | Error::EndsNotFixed {} => Some(LATER_MS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_error_keeps_its_fields() {
        let error = CallError::from(Error::BatchTooLarge { what: "messages", size: 3, limit: 2 });
        let named: Vec<_> = error.details().iter().cloned().collect();
        assert_eq!(
            named,
            [
                ("what", Detail::Text("messages".to_owned())),
                ("size", Detail::Number(3)),
                ("limit", Detail::Number(2))
            ]
        );
        assert!(!error.is_ours());
    }

    #[test]
    fn the_leader_that_an_error_names_gets_its_address() {
        let address_of = |node| (node == 2).then(|| "two:7070".to_owned());
        let error = CallError::from(Error::NotLeader { leader: 2 }).with_address(address_of);
        let named: Vec<_> = error.details().iter().cloned().collect();
        let address = Detail::Text("two:7070".to_owned());
        assert_eq!(named, [("leader", Detail::Number(2)), ("address", address)]);
        let unknown = CallError::from(Error::NotLeader { leader: 3 }).with_address(address_of);
        assert_eq!(unknown.details().iter().count(), 1);
        let other = CallError::from(Error::NoLeader {}).with_address(address_of);
        assert_eq!(other.details().iter().count(), 0);
    }

    #[test]
    fn the_operation_of_a_transaction_is_named() {
        let field = |error: &CallError| match error.details().iter().next() {
            Some(("field", Detail::Text(field))) => field.clone(),
            _ => String::new(),
        };
        let operation = Some(&("operation", Detail::Number(2)));
        let fault = CallError::from(Fault::invalid("no").inside("token")).at_operation(2, "put");
        assert_eq!(
            (fault.message(), &*field(&fault)),
            ("operations[2].put.token: no", "operations[2].put.token")
        );
        assert_eq!(fault.details().iter().last(), operation);
        let lost = Error::LeaseLost { receipt: "r".into() };
        let lost = CallError::from(lost).at_operation(2, "settle");
        assert!(lost.message().starts_with("operations[2].settle: the lease behind receipt r is over"));
        let of_engine = Fault::invalid("no").inside("key").inside("put").at(2).inside("operations");
        let renamed = CallError::from(of_engine).of_operation(|_| Some("patch"));
        assert_eq!(
            (renamed.message(), &*field(&renamed)),
            ("operations[2].patch.key: no", "operations[2].patch.key")
        );
        assert_eq!(renamed.details().iter().last(), operation);
        let other = CallError::from(Error::ShuttingDown {}).of_operation(|_| None);
        assert_eq!(other.details().iter().count(), 0);
    }

    #[test]
    fn an_operation_has_its_place_in_the_request_wherever_it_is_named() {
        let (field, reason) = ("operations[1].put.key".into(), "operations[0] is about it already".into());
        let error = CallError::from(Error::InvalidArgument { field, reason });
        let placed = error.of_operation(|_| None).at_place(|at| [4, 7][at]);
        assert_eq!(placed.message(), "operations[7].put.key: operations[4] is about it already");
        let details = [
            ("field", Detail::Text("operations[7].put.key".to_owned())),
            ("reason", Detail::Text("operations[4] is about it already".to_owned())),
            ("operation", Detail::Number(7)),
        ];
        assert_eq!(placed.details().iter().cloned().collect::<Vec<_>>(), details);
    }

    #[test]
    fn a_field_has_its_name_in_the_request() {
        let empty = || Error::InvalidArgument { field: "chunk".into(), reason: "chunk".into() };
        let named = CallError::from(empty()).of_field("chunk", "content_base64");
        assert_eq!(named.message(), "content_base64: chunk");
        let field = Detail::Text("content_base64".to_owned());
        assert_eq!(named.details().iter().next(), Some(&("field", field)));
        assert_eq!(CallError::from(empty()).of_field("bytes", "size").message(), "chunk: chunk");
    }

    #[test]
    fn what_callers_and_changes_of_the_leader_bring_about_is_no_error_of_the_server() {
        let how = "reject";
        let full = Error::QueueFull { queue: "q".into(), what: "messages", limit: 1, held: 1, how, more: 1 };
        let limit = Error::LimitExceeded { what: "consumers", limit: 1 };
        let quota = Error::QuotaExceeded { what: "messages", limit: 1, held: 1, more: 1 };
        let busy = Error::Overloaded { what: "requests", retry_after_ms: 1 };
        let doubt = Error::InDoubt { what: "queue q".into() };
        for error in [full, limit, quota, busy, doubt, Error::NoLeader {}, Error::OutcomeUnknown {}] {
            assert!(!CallError::from(error.clone()).is_ours(), "{error}");
        }
        for error in
            [Error::DiskFull { free_bytes: 1, needed_bytes: 1 }, Error::Internal { reason: String::new() }]
        {
            assert!(CallError::from(error.clone()).is_ours(), "{error}");
        }
    }

    #[test]
    fn a_fault_names_place_and_what_is_allowed() {
        let error = CallError::from(Fault::unknown("field", "x", &["a", "b"]).at(3).inside("messages"));
        assert_eq!(error.message(), "messages[3].x: unknown field: known here are a, b");
        let named: Vec<_> = error.details().iter().cloned().collect();
        let field = Detail::Text("messages[3].x".to_owned());
        assert_eq!(named, [("field", field), ("allowed", Detail::Words(vec!["a", "b"]))]);
        let error = CallError::from(Box::<Fault>::from(Error::ShuttingDown {}).inside("a"));
        assert!(error.message().starts_with("a: the server is shutting down"));
    }
}

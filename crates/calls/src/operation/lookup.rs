//! The properties of each operation, as the table declares them.

use super::{DECLARATIONS, Declaration, HttpName, Kind, Method, Operation, Scope, Subject, Trait};
use crate::access::Right;

impl Operation {
    fn declaration(self) -> &'static Declaration {
        &DECLARATIONS[self as usize]
    }

    /// True if it can be called over a session, where nothing is audited.
    pub fn is_called_over_sessions(self) -> bool {
        let is_work = matches!(self.right(), Right::Coordinate | Right::Read | Right::Result);
        // Receives may be a part of a transaction.
        let is_of_worker = self.topic() == "transactions" && self.right() == Right::Open;
        let is_transaction = is_of_worker || self == Operation::ReceiveMany;
        (is_work && self.kind() == Kind::Unary) || is_transaction
    }

    /// The operation's name in metrics, the API description and the audit log.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// The group in which the API description lists it.
    pub fn topic(self) -> &'static str {
        self.declaration().topic
    }

    /// Summary in one line.
    pub fn summary(self) -> &'static str {
        self.declaration().about[0].trim().trim_end_matches('.')
    }

    /// Further notes; may be empty.
    pub fn notes(self) -> String {
        let lines: Vec<&str> = self.declaration().about[1..].iter().map(|line| line.trim()).collect();
        lines.join(" ")
    }

    /// The place where its names are looked up.
    pub fn scope(self) -> Scope {
        self.declaration().scope
    }

    /// The right that it needs.
    pub fn right(self) -> Right {
        self.declaration().right
    }

    /// The part of the server at which the caller needs the right.
    pub fn subject(self) -> Subject {
        self.declaration().subject
    }

    /// True if it has a property.
    #[inline]
    pub fn is(self, property: Trait) -> bool {
        self.declaration().traits & property as u8 != 0
    }

    /// Method and path in HTTP.
    pub fn http(self) -> &'static HttpName {
        &self.declaration().http
    }

    /// Service and method in gRPC behind `/sluice.v1.`; `None`: it has none.
    pub fn grpc(self) -> Option<&'static str> {
        self.declaration().grpc
    }

    /// The way in which its requests are decoded and run.
    #[inline]
    pub fn kind(self) -> Kind {
        self.declaration().kind
    }

    /// True if it changes nothing.
    pub fn only_looks(self) -> bool {
        // The filter of a query has no place in a URL.
        let filters = matches!(self, Operation::DocumentQuery | Operation::MessageSearch);
        self.http().method == Method::Get || filters
    }

    /// True if a request over HTTP has no body: its fields stand behind the `?`.
    pub fn is_query(self) -> bool {
        matches!(self.http().method, Method::Get | Method::Delete)
    }

    /// True if the audit log records it.
    pub fn is_audited(self) -> bool {
        let changes = matches!(self.right(), Right::Operate | Right::Admin) && !self.only_looks();
        changes || matches!(self, Operation::Backup | Operation::ClusterJoin)
    }
}

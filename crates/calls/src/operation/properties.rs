//! The properties that an operation can have.

/// The way in which the request of an operation is decoded and run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One typed request and one typed answer: [`unary`](crate::unary).
    Unary,
    /// A request that carries messages or receipts, decoded by hand.
    Hot(Hot),
    /// A request without a type, of a protocol's own.
    Special(Special),
}

/// The calls that carry messages or receipts, decoded by hand: [`hot`](crate::hot).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hot {
    /// [`Operation::Send`].
    Send,
    /// [`Operation::Receive`].
    Receive,
    /// [`Operation::Settle`].
    Settle,
    /// [`Operation::Ack`].
    Ack,
    /// [`Operation::Nack`].
    Nack,
    /// [`Operation::Release`].
    Release,
    /// [`Operation::Reject`].
    Reject,
    /// [`Operation::Extend`].
    Extend,
    /// [`Operation::ReceiveMany`].
    ReceiveMany,
    /// [`Operation::GroupSend`].
    GroupSend,
    /// [`Operation::SchedulePut`].
    SchedulePut,
    /// [`Operation::TransactionCommit`].
    TransactionCommit,
    /// [`Operation::TransactionStage`].
    TransactionStage,
    /// [`Operation::TransactionClose`].
    TransactionClose,
}

/// The calls that have no typed request: payloads as bodies, streams, and documents about the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// [`Operation::SendRaw`].
    SendRaw,
    /// [`Operation::ReceiveRaw`].
    ReceiveRaw,
    /// [`Operation::DocumentPutRaw`].
    DocumentPutRaw,
    /// [`Operation::DocumentPatchRaw`].
    DocumentPatchRaw,
    /// [`Operation::DocumentRaw`].
    DocumentRaw,
    /// [`Operation::UploadRaw`].
    UploadRaw,
    /// [`Operation::AttachmentPutRaw`].
    AttachmentPutRaw,
    /// [`Operation::AttachmentRaw`].
    AttachmentRaw,
    /// [`Operation::DocumentWatch`].
    DocumentWatch,
    /// [`Operation::LockWatch`].
    LockWatch,
    /// [`Operation::ResultRaw`].
    ResultRaw,
    /// [`Operation::Events`].
    Events,
    /// [`Operation::QueueEvents`].
    QueueEvents,
    /// [`Operation::Statistics`].
    Statistics,
    /// [`Operation::Backup`].
    Backup,
    /// [`Operation::Health`].
    Health,
    /// [`Operation::Ready`].
    Ready,
    /// [`Operation::Metrics`].
    Metrics,
    /// [`Operation::OpenApi`].
    OpenApi,
    /// [`Operation::Docs`].
    Docs,
}

/// The place where the names of a call are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A namespace that the call names, or the default one.
    Namespaced,
    /// The call is about a namespace, whose name it gives.
    Namespace,
    /// The server as a whole.
    Server,
}

/// The part of the server at which a caller needs the right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The server.
    Server,
    /// The whole namespace.
    Namespace,
    /// The queue that the call names.
    Queue,
    /// Queues that are known only when the body is read or the message is found: at least one of the
    /// namespace, and each of them as it is found.
    SomeQueue,
    /// The key of a lock or a document that the call names.
    Key,
    /// Keys that are known only when the body is read: at least one of the namespace, and each of them as it
    /// is found.
    SomeKey,
}

/// A property of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Trait {
    /// Called by the hundred thousand; decoded by hand.
    Hot = 1,
    /// Makes less of the work that the server has: refused last.
    Relieves = 2,
    /// Answers with messages or lists, which may take much memory until the client has read them. The others,
    /// settling and sending above all, are never refused for lack of it.
    Long = 4,
    /// Open to every caller, without authentication.
    Public = 8,
    /// Answered however busy the server is.
    Always = 16,
    /// About the node that is asked, whatever it leads.
    Local = 32,
    /// Shows state. The node that is asked answers from what it has, which may be behind, if the caller says
    /// that this will do.
    Stale = 64,
    /// Waits for as long as its caller says.
    Waits = 128,
}

/// The method of an operation in HTTP (RFC 9110 §9.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Changes nothing; stands for HEAD as well.
    Get,
    /// Sets what its path names.
    Put,
    /// Does something.
    Post,
    /// Changes a part of what its path names.
    Patch,
    /// Removes what its path names.
    Delete,
}

/// The root of an operation's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    /// `/v1`; for those in a namespace also `/v1/namespaces/{namespace}`.
    V1,
    /// `/`.
    Root,
}

/// The name of an operation in HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpName {
    /// The method.
    pub method: Method,
    /// The root of the path.
    pub root: Root,
    /// The rest of the path; at most one segment is a `{name}`.
    pub segments: &'static [&'static str],
}

impl Method {
    /// The method as HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Put => "PUT",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

impl HttpName {
    /// The name in the path, without its braces; `None`: the path names nothing.
    pub fn captured(&self) -> Option<&'static str> {
        self.segments.iter().find_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }
}

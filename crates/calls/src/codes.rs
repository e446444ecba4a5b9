//! The one table from error codes to the status of every protocol.
//!
//! The first part holds the codes of the engine, the second those of the fronts themselves. Tests walk it, so
//! that no code is missing, is there twice, or has a status that its protocol does not know.

/// The equivalents of an error code in each protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    /// The stable snake_case code.
    pub code: &'static str,
    /// HTTP status (RFC 9110 §15).
    pub http: u16,
    /// gRPC status code, as in `google.rpc.Code`.
    pub grpc: u8,
    /// MQTT 5 reason code (MQTT-2.4).
    pub mqtt: u8,
    /// AMQP 0-9-1 reply code.
    pub amqp: u16,
    /// Exit code of the command line: see [`exit`].
    pub exit: u8,
}

/// Exit codes of the command line.
pub mod exit {
    /// The request was wrong: names, values, usage.
    pub const USAGE: u8 = 2;
    /// The thing does not exist.
    pub const NOT_FOUND: u8 = 3;
    /// The state does not allow it: lease lost, exists already, not empty.
    pub const CONFLICT: u8 = 4;
    /// Too large for a limit.
    pub const TOO_LARGE: u8 = 5;
    /// A quota, a limit or the disk is full.
    pub const FULL: u8 = 6;
    /// The server is busy, stopping or not reachable: try again.
    pub const UNAVAILABLE: u8 = 7;
    /// The server has failed.
    pub const SERVER: u8 = 8;
    /// Not allowed.
    pub const FORBIDDEN: u8 = 9;
}

/// gRPC status codes, by the names of `google.rpc.Code`.
mod grpc {
    pub(super) const UNKNOWN: u8 = 2;
    pub(super) const INVALID_ARGUMENT: u8 = 3;
    pub(super) const DEADLINE_EXCEEDED: u8 = 4;
    pub(super) const NOT_FOUND: u8 = 5;
    pub(super) const ALREADY_EXISTS: u8 = 6;
    pub(super) const PERMISSION_DENIED: u8 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u8 = 8;
    pub(super) const FAILED_PRECONDITION: u8 = 9;
    pub(super) const ABORTED: u8 = 10;
    pub(super) const UNIMPLEMENTED: u8 = 12;
    pub(super) const INTERNAL: u8 = 13;
    pub(super) const UNAVAILABLE: u8 = 14;
    pub(super) const DATA_LOSS: u8 = 15;
    pub(super) const UNAUTHENTICATED: u8 = 16;
}

/// MQTT 5 reason codes, by the names of MQTT-2.4.
mod mqtt {
    pub(super) const UNSPECIFIED: u8 = 0x80;
    pub(super) const IMPLEMENTATION_SPECIFIC: u8 = 0x83;
    pub(super) const BAD_USER_NAME_OR_PASSWORD: u8 = 0x86;
    pub(super) const NOT_AUTHORIZED: u8 = 0x87;
    pub(super) const SERVER_UNAVAILABLE: u8 = 0x88;
    pub(super) const SERVER_BUSY: u8 = 0x89;
    pub(super) const SERVER_SHUTTING_DOWN: u8 = 0x8b;
    pub(super) const TOPIC_NAME_INVALID: u8 = 0x90;
    pub(super) const PACKET_TOO_LARGE: u8 = 0x95;
    pub(super) const QUOTA_EXCEEDED: u8 = 0x97;
    pub(super) const PAYLOAD_FORMAT_INVALID: u8 = 0x99;
}

/// AMQP 0-9-1 reply codes.
mod amqp {
    pub(super) const CONTENT_TOO_LARGE: u16 = 311;
    pub(super) const INVALID_PATH: u16 = 402;
    pub(super) const ACCESS_REFUSED: u16 = 403;
    pub(super) const NOT_FOUND: u16 = 404;
    pub(super) const PRECONDITION_FAILED: u16 = 406;
    pub(super) const CONNECTION_FORCED: u16 = 320;
    pub(super) const SYNTAX_ERROR: u16 = 502;
    pub(super) const RESOURCE_ERROR: u16 = 506;
    pub(super) const NOT_IMPLEMENTED: u16 = 540;
    pub(super) const INTERNAL_ERROR: u16 = 541;
}

const fn row(code: &'static str, http: u16, grpc: u8, mqtt: u8, amqp: u16, exit: u8) -> Code {
    Code { code, http, grpc, mqtt, amqp, exit }
}

const fn caller(code: &'static str) -> Code {
    row(code, 400, grpc::INVALID_ARGUMENT, mqtt::PAYLOAD_FORMAT_INVALID, amqp::SYNTAX_ERROR, exit::USAGE)
}

const fn not_found(code: &'static str) -> Code {
    row(code, 404, grpc::NOT_FOUND, mqtt::IMPLEMENTATION_SPECIFIC, amqp::NOT_FOUND, exit::NOT_FOUND)
}

const fn conflict(code: &'static str, grpc: u8) -> Code {
    row(code, 409, grpc, mqtt::IMPLEMENTATION_SPECIFIC, amqp::PRECONDITION_FAILED, exit::CONFLICT)
}

const fn too_large(code: &'static str) -> Code {
    row(code, 413, grpc::INVALID_ARGUMENT, mqtt::PACKET_TOO_LARGE, amqp::CONTENT_TOO_LARGE, exit::TOO_LARGE)
}

const fn full(code: &'static str, http: u16, mqtt: u8, exit: u8) -> Code {
    row(code, http, grpc::RESOURCE_EXHAUSTED, mqtt, amqp::RESOURCE_ERROR, exit)
}

/// This node does not lead the shard of the call.
const fn unled(code: &'static str) -> Code {
    row(code, 503, grpc::UNAVAILABLE, mqtt::SERVER_UNAVAILABLE, amqp::CONNECTION_FORCED, exit::UNAVAILABLE)
}

/// Every code there is.
pub const TABLE: &[Code] = &[
    row(
        "invalid_name",
        400,
        grpc::INVALID_ARGUMENT,
        mqtt::TOPIC_NAME_INVALID,
        amqp::INVALID_PATH,
        exit::USAGE,
    ),
    caller("invalid_argument"),
    caller("invalid_message_id"),
    caller("invalid_receipt"),
    not_found("namespace_not_found"),
    conflict("namespace_exists", grpc::ALREADY_EXISTS),
    conflict("namespace_not_empty", grpc::FAILED_PRECONDITION),
    not_found("queue_not_found"),
    conflict("queue_closed", grpc::FAILED_PRECONDITION),
    not_found("limit_not_found"),
    not_found("schedule_not_found"),
    not_found("document_not_found"),
    not_found("index_not_found"),
    not_found("attachment_not_found"),
    not_found("upload_not_found"),
    conflict("changes_forgotten", grpc::FAILED_PRECONDITION),
    not_found("defaults_not_found"),
    not_found("consumer_not_found"),
    conflict("limit_in_use", grpc::FAILED_PRECONDITION),
    not_found("message_not_found"),
    not_found("bulk_not_found"),
    not_found("parent_not_found"),
    conflict("wrong_state", grpc::FAILED_PRECONDITION),
    conflict("version_mismatch", grpc::ABORTED),
    conflict("patch_failed", grpc::FAILED_PRECONDITION),
    conflict("upload_offset", grpc::FAILED_PRECONDITION),
    conflict("upload_incomplete", grpc::FAILED_PRECONDITION),
    conflict("digest_mismatch", grpc::DATA_LOSS),
    conflict("unique_key_taken", grpc::ALREADY_EXISTS),
    conflict("lease_lost", grpc::ABORTED),
    conflict("lock_held", grpc::ABORTED),
    conflict("cancelled", grpc::ABORTED),
    conflict("transaction_lost", grpc::ABORTED),
    conflict("transaction_aborted", grpc::ABORTED),
    not_found("transaction_not_found"),
    conflict("already_settled", grpc::ALREADY_EXISTS),
    conflict("idempotency_mismatch", grpc::FAILED_PRECONDITION),
    too_large("payload_too_large"),
    too_large("headers_too_large"),
    too_large("batch_too_large"),
    full("queue_full", 429, mqtt::QUOTA_EXCEEDED, exit::FULL),
    full("quota_exceeded", 429, mqtt::QUOTA_EXCEEDED, exit::FULL),
    full("limit_exceeded", 429, mqtt::QUOTA_EXCEEDED, exit::FULL),
    full("overloaded", 429, mqtt::SERVER_BUSY, exit::UNAVAILABLE),
    full("disk_full", 507, mqtt::QUOTA_EXCEEDED, exit::FULL),
    row(
        "shutting_down",
        503,
        grpc::UNAVAILABLE,
        mqtt::SERVER_SHUTTING_DOWN,
        amqp::CONNECTION_FORCED,
        exit::UNAVAILABLE,
    ),
    unled("not_leader"),
    unled("no_leader"),
    unled("in_doubt"),
    conflict("not_in_force", grpc::FAILED_PRECONDITION),
    row("outcome_unknown", 503, grpc::UNKNOWN, mqtt::UNSPECIFIED, amqp::INTERNAL_ERROR, exit::UNAVAILABLE),
    row(
        "journal_failed",
        503,
        grpc::UNAVAILABLE,
        mqtt::SERVER_UNAVAILABLE,
        amqp::INTERNAL_ERROR,
        exit::SERVER,
    ),
    row("payload_damaged", 500, grpc::DATA_LOSS, mqtt::UNSPECIFIED, amqp::INTERNAL_ERROR, exit::SERVER),
    row("internal", 500, grpc::INTERNAL, mqtt::UNSPECIFIED, amqp::INTERNAL_ERROR, exit::SERVER),
    // Those of the fronts.
    row(
        "unauthenticated",
        401,
        grpc::UNAUTHENTICATED,
        mqtt::BAD_USER_NAME_OR_PASSWORD,
        amqp::ACCESS_REFUSED,
        exit::FORBIDDEN,
    ),
    row(
        "forbidden",
        403,
        grpc::PERMISSION_DENIED,
        mqtt::NOT_AUTHORIZED,
        amqp::ACCESS_REFUSED,
        exit::FORBIDDEN,
    ),
    row(
        "approval_needed",
        403,
        grpc::PERMISSION_DENIED,
        mqtt::NOT_AUTHORIZED,
        amqp::ACCESS_REFUSED,
        exit::FORBIDDEN,
    ),
    full("rate_limited", 429, mqtt::QUOTA_EXCEEDED, exit::UNAVAILABLE),
    not_found("token_not_found"),
    not_found("policy_not_found"),
    conflict("token_exists", grpc::ALREADY_EXISTS),
    conflict("admin_needed", grpc::FAILED_PRECONDITION),
    conflict("no_cluster", grpc::FAILED_PRECONDITION),
    conflict("no_test_server", grpc::FAILED_PRECONDITION),
    conflict("node_exists", grpc::ALREADY_EXISTS),
    conflict("node_refused", grpc::FAILED_PRECONDITION),
    not_found("node_not_found"),
    conflict("not_transferred", grpc::FAILED_PRECONDITION),
    conflict("not_finalized", grpc::FAILED_PRECONDITION),
    caller("invalid_json"),
    caller("invalid_protobuf"),
    caller("frame_out_of_order"),
    caller("unknown_field"),
    caller("duplicate_field"),
    caller("wrong_type"),
    caller("missing_field"),
    caller("conflicting_fields"),
    caller("incomplete_body"),
    caller("query_too_costly"),
    caller("tls_required"),
    row(
        "forbidden_origin",
        403,
        grpc::PERMISSION_DENIED,
        mqtt::NOT_AUTHORIZED,
        amqp::ACCESS_REFUSED,
        exit::FORBIDDEN,
    ),
    not_found("not_found"),
    row(
        "method_not_allowed",
        405,
        grpc::UNIMPLEMENTED,
        mqtt::IMPLEMENTATION_SPECIFIC,
        amqp::NOT_IMPLEMENTED,
        exit::USAGE,
    ),
    row(
        "request_timeout",
        408,
        grpc::DEADLINE_EXCEEDED,
        mqtt::UNSPECIFIED,
        amqp::CONNECTION_FORCED,
        exit::UNAVAILABLE,
    ),
    too_large("body_too_large"),
    row(
        "head_too_large",
        431,
        grpc::INVALID_ARGUMENT,
        mqtt::PACKET_TOO_LARGE,
        amqp::CONTENT_TOO_LARGE,
        exit::TOO_LARGE,
    ),
    row(
        "unsupported_content_encoding",
        415,
        grpc::INVALID_ARGUMENT,
        mqtt::PAYLOAD_FORMAT_INVALID,
        amqp::SYNTAX_ERROR,
        exit::USAGE,
    ),
    row(
        "unsupported_transfer_encoding",
        501,
        grpc::UNIMPLEMENTED,
        mqtt::PAYLOAD_FORMAT_INVALID,
        amqp::NOT_IMPLEMENTED,
        exit::USAGE,
    ),
    row(
        "unsupported_media_type",
        415,
        grpc::INVALID_ARGUMENT,
        mqtt::PAYLOAD_FORMAT_INVALID,
        amqp::SYNTAX_ERROR,
        exit::USAGE,
    ),
];

/// Finds the row of a code; `None` if no such code exists (a newer server may have codes that we do not
/// know).
pub fn find(code: &str) -> Option<&'static Code> {
    TABLE.iter().find(|row| row.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_engine::Error;

    #[test]
    fn every_code_of_the_engine_is_here() {
        for code in Error::CODES {
            assert!(find(code).is_some(), "{code} has no row");
        }
    }

    #[test]
    fn no_code_is_here_twice_and_each_status_exists() {
        for (at, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|other| other.code != row.code), "{} is there twice", row.code);
            assert!((400..600).contains(&row.http), "{}: HTTP {}", row.code, row.http);
            assert!((1..=16).contains(&row.grpc), "{}: gRPC {}", row.code, row.grpc);
            assert!(row.mqtt >= 0x80, "{}: MQTT {:#x} is a success", row.code, row.mqtt);
            assert!((300..600).contains(&row.amqp), "{}: AMQP {}", row.code, row.amqp);
            assert!((2..=9).contains(&row.exit), "{}: exit {}", row.code, row.exit);
        }
    }

    #[test]
    fn what_may_be_retried_as_it_is_says_so_everywhere() {
        for code in ["overloaded", "shutting_down", "not_leader", "no_leader"] {
            let row = find(code).unwrap();
            assert_eq!(row.exit, exit::UNAVAILABLE);
            assert!(row.http == 429 || row.http == 503);
        }
    }
}

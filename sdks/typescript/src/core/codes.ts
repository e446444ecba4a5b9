/** Codes of the server's errors, as docs/errors.md lists them. Their meanings never change. */
export const SERVER_CODES = [
  "invalid_json",
  "invalid_protobuf",
  "frame_out_of_order",
  "unknown_field",
  "duplicate_field",
  "wrong_type",
  "missing_field",
  "conflicting_fields",
  "invalid_argument",
  "invalid_name",
  "invalid_message_id",
  "invalid_receipt",
  "query_too_costly",
  "incomplete_body",
  "tls_required",
  "unauthenticated",
  "forbidden",
  "approval_needed",
  "forbidden_origin",
  "not_found",
  "namespace_not_found",
  "queue_not_found",
  "defaults_not_found",
  "limit_not_found",
  "consumer_not_found",
  "document_not_found",
  "index_not_found",
  "attachment_not_found",
  "upload_not_found",
  "changes_forgotten",
  "schedule_not_found",
  "node_not_found",
  "token_not_found",
  "policy_not_found",
  "message_not_found",
  "parent_not_found",
  "method_not_allowed",
  "request_timeout",
  "lease_lost",
  "lock_held",
  "cancelled",
  "transaction_lost",
  "transaction_not_found",
  "transaction_aborted",
  "version_mismatch",
  "already_settled",
  "bulk_not_found",
  "wrong_state",
  "queue_closed",
  "token_exists",
  "no_cluster",
  "no_test_server",
  "node_exists",
  "node_refused",
  "not_in_force",
  "not_finalized",
  "not_transferred",
  "admin_needed",
  "limit_in_use",
  "upload_offset",
  "upload_incomplete",
  "digest_mismatch",
  "patch_failed",
  "unique_key_taken",
  "namespace_exists",
  "namespace_not_empty",
  "idempotency_mismatch",
  "head_too_large",
  "body_too_large",
  "payload_too_large",
  "headers_too_large",
  "batch_too_large",
  "unsupported_content_encoding",
  "unsupported_transfer_encoding",
  "unsupported_media_type",
  "overloaded",
  "rate_limited",
  "queue_full",
  "quota_exceeded",
  "limit_exceeded",
  "disk_full",
  "shutting_down",
  "not_leader",
  "in_doubt",
  "no_leader",
  "outcome_unknown",
  "journal_failed",
  "payload_damaged",
  "internal",
] as const;

/**
 * Codes of errors that do not come from the server: `unreachable`, there is no connection or it broke;
 * `tls_failed`, a certificate or the agreement on TLS; `timed_out`, no answer in the caller's time;
 * `not_understood`, the answer is not one of Sluice; `usage`, the options or arguments are wrong;
 * `work_failed`, the message of a request or result has died; `failed`, anything else.
 */
export const CLIENT_CODES = [
  "unreachable",
  "tls_failed",
  "timed_out",
  "not_understood",
  "usage",
  "work_failed",
  "failed",
] as const;

/** A code of the server. */
export type ServerCode = (typeof SERVER_CODES)[number];

/** A code of this library. */
export type ClientCode = (typeof CLIENT_CODES)[number];

/** A code that this library knows. */
export type KnownCode = ServerCode | ClientCode;

/** The code of an error: one of those that are known, or one of a newer server. */
export type ErrorCode = KnownCode | (string & {});

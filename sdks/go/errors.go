package sluice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice/sluice-go/sluicepb"
)

// Error is an error of the server, or of the way to it.
type Error struct {
	// Code is the stable code of the error, of those of the constants whose names begin with Code.
	Code string
	// Message is for people.
	Message string
	// Details are the values that the message is about.
	Details map[string]string
	// RetryAfter is the time after which a retry may help, if the server has named one.
	RetryAfter time.Duration

	status *status.Status
	cause  error
}

// Error returns the message, with the code behind it.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s (%s)", e.Message, e.Code)
	if e.cause != nil {
		return e.cause.Error() + ": " + text
	}
	return text
}

// Unwrap returns the error of the context that ended the call, if one did.
func (e *Error) Unwrap() error { return e.cause }

// Is makes errors.Is true for a value of this package that stands for the code.
func (e *Error) Is(target error) bool {
	kind, ok := target.(*kind)
	return ok && kind.has(e.Code)
}

// GRPCStatus returns the status as it came, for callers that work with gRPC.
func (e *Error) GRPCStatus() *status.Status {
	if e.status == nil {
		return status.New(codes.Unknown, e.Error())
	}
	return e.status
}

// kind is an error that stands for one code or several.
type kind struct {
	text string
	has  func(code string) bool
}

func (k *kind) Error() string { return "sluice: " + k.text }

func ofCodes(text string, all ...string) error {
	return &kind{text, func(code string) bool {
		for _, one := range all {
			if code == one {
				return true
			}
		}
		return false
	}}
}

// Values for errors.Is. Those that stand for several codes say so.
var (
	// ErrNotFound stands for each code that ends with not_found: of a queue, message, document, ...
	ErrNotFound error = &kind{"not found", func(code string) bool {
		return strings.HasSuffix(code, "not_found")
	}}
	// ErrInvalid stands for errors in the request itself.
	ErrInvalid = ofCodes("invalid request", CodeInvalidArgument, CodeInvalidName, CodeMissingField,
		CodeConflictingFields, CodeUnknownField, CodeWrongType, CodeInvalidProtobuf, CodeInvalidMessageID,
		CodeInvalidReceipt)
	// ErrTooLarge stands for requests, payloads and batches that are too large.
	ErrTooLarge = ofCodes("too large", CodeBodyTooLarge, CodePayloadTooLarge, CodeHeadersTooLarge,
		CodeBatchTooLarge)
	// ErrOverloaded stands for too many requests: retry later.
	ErrOverloaded = ofCodes("overloaded", CodeOverloaded, CodeRateLimited)
	// ErrUnavailable stands for servers that are not reached, are stopping, or have no leader.
	ErrUnavailable = ofCodes("unavailable", CodeUnreachable, CodeShuttingDown, CodeNotLeader, CodeNoLeader)

	ErrVersionMismatch     = ofCodes("version mismatch", CodeVersionMismatch)
	ErrLeaseLost           = ofCodes("lease lost", CodeLeaseLost)
	ErrLockHeld            = ofCodes("lock held", CodeLockHeld)
	ErrCancelled           = ofCodes("message cancelled", CodeCancelled)
	ErrAlreadySettled      = ofCodes("already settled", CodeAlreadySettled)
	ErrTransactionLost     = ofCodes("transaction lost", CodeTransactionLost)
	ErrTransactionAborted  = ofCodes("transaction aborted", CodeTransactionAborted)
	ErrPatchFailed         = ofCodes("patch failed", CodePatchFailed)
	ErrChangesForgotten    = ofCodes("changes forgotten", CodeChangesForgotten)
	ErrUniqueKeyTaken      = ofCodes("unique key taken", CodeUniqueKeyTaken)
	ErrIdempotencyMismatch = ofCodes("idempotency mismatch", CodeIdempotencyMismatch)
	ErrWrongState          = ofCodes("wrong state", CodeWrongState)
	ErrQueueClosed         = ofCodes("queue closed", CodeQueueClosed)
	ErrQueueFull           = ofCodes("queue full", CodeQueueFull)
	ErrQuotaExceeded       = ofCodes("quota exceeded", CodeQuotaExceeded)
	ErrLimitExceeded       = ofCodes("limit exceeded", CodeLimitExceeded)
	ErrDiskFull            = ofCodes("disk full", CodeDiskFull)
	ErrUnauthenticated     = ofCodes("unauthenticated", CodeUnauthenticated)
	ErrForbidden           = ofCodes("forbidden", CodeForbidden, CodeApprovalNeeded, CodeForbiddenOrigin)
	ErrOutcomeUnknown      = ofCodes("outcome unknown", CodeOutcomeUnknown)

	// ErrDead stands for a message that has become a dead letter; see [DeadLetterError].
	ErrDead error = &kind{"dead letter", func(string) bool { return false }}
	// ErrStopping is the cause of the end of a handler's context when its worker does not wait any longer.
	ErrStopping error = &kind{"the worker is stopping", func(string) bool { return false }}
)

// toError makes an *Error of what a call has returned.
func toError(ctx context.Context, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	made := fromStatus(status.Convert(err))
	if ctx.Err() != nil {
		made.cause = context.Cause(ctx)
	}
	return made
}

// notEncoded is how the library begins its text about a request that cannot be encoded, such as one with a text
// that is no UTF-8. Nothing was sent.
const notEncoded = "grpc: error while marshaling"

// fromStatus reads code, details and delay out of a status.
func fromStatus(s *status.Status) *Error {
	e := &Error{Code: codeOfStatus(s.Code()), Message: s.Message(), status: s}
	if s.Code() == codes.Internal && strings.HasPrefix(s.Message(), notEncoded) {
		e.Code = CodeInvalidArgument
	}
	for _, detail := range s.Proto().GetDetails() {
		readDetail(e, detail.GetTypeUrl(), detail.GetValue())
	}
	return e
}

// codeOfStatus is the code where the status has no details: it comes from the library or from a proxy.
func codeOfStatus(code codes.Code) string {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return CodeUnreachable
	case codes.Unimplemented:
		return CodeMethodNotAllowed
	case codes.Unauthenticated:
		return CodeUnauthenticated
	case codes.PermissionDenied:
		return CodeForbidden
	case codes.ResourceExhausted:
		return CodeBodyTooLarge
	default:
		return CodeInternal
	}
}

// fromItem is the error of one item of a call, nil if there is none.
func fromItem(e *sluicepb.Error) *Error {
	if e == nil {
		return nil
	}
	return &Error{Code: e.Code, Message: e.Message, Details: e.Details}
}

// codeOf returns the code of an error of the server, empty for any other error.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

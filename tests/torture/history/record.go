// Package history holds the record of a run, as JSON lines, and all that is checked of it. It knows nothing
// of servers, faults and clients.
package history

// Kinds of records. A call that concerns several messages makes one record for each of them.
const (
	Send     = "send"     // a message was sent: Key, ID, Duplicate
	Delivery = "delivery" // a receive brought a message: Key, ID, Receipt, LeaseMs
	Ack      = "ack"      // the holder settled it: Key, Receipt, Result
	Nack     = "nack"     // the holder gave it back: Key, Receipt
	Result   = "result"   // somebody asked for its result: Key, ID, State, Result
	Figures  = "figures"  // somebody asked for the counts of a queue: Stored, Done
	Listed   = "listed"   // the list at the end has the message: Key, ID, State
	Fault    = "fault"    // something was done to a server or to the network: Note, and Jump as Code
	End      = "end"      // all servers run, every message is settled, and every queue was listed
)

// Outcomes of a call. Only a known outcome says that there was an answer.
const (
	OK      = "ok"      // it took effect
	Already = "already" // ack, nack: this receipt had done it before
	Lost    = "lost"    // ack, nack: the receipt counts no more
	Denied  = "denied"  // a condition did not hold: no call of a message has any
	Refused = "refused" // it took no effect
	Unknown = "unknown" // it took effect, or will, or never does
)

// Jump marks a fault in which the time of a server may have jumped, so that leases ended early.
const Jump = "jump"

// States of a message in an answer.
const (
	Pending  = "pending"
	Done     = "done"
	NotFound = "not_found"
)

// Record is a call and its answer, as a client saw them. Times are nanoseconds since the begin of the run.
type Record struct {
	Kind      string `json:"kind"`
	Client    int    `json:"client"`
	Call      int64  `json:"call"`
	Return    int64  `json:"return"`
	Outcome   string `json:"outcome,omitempty"`
	Code      string `json:"code,omitempty"` // of the error, for who reads the history
	Queue     string `json:"queue,omitempty"`
	Key       string `json:"key,omitempty"` // idempotency key and payload: the message's name in the history
	ID        string `json:"id,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"`
	Receipt   string `json:"receipt,omitempty"`
	LeaseMs   int64  `json:"lease_ms,omitempty"`
	Result    string `json:"result,omitempty"`
	State     string `json:"state,omitempty"`
	Stored    int    `json:"stored,omitempty"` // messages of the queue in any state
	Done      int    `json:"done,omitempty"`   // those of them that were acked
	Note      string `json:"note,omitempty"`
}

// Package coordination holds the record of what clients do with locks, documents and transactions, as JSON
// lines, and all that is checked of it. It knows nothing of servers, faults and clients.
package coordination

// Kinds of records.
const (
	Called  = "called"  // a call with one operation, or a transaction with several
	Balance = "balance" // the sum of both numbers of a group, as a holder of both locks has read them
	Fault   = "fault"   // something was done to a server or to the network: Note, and Jump as Code
	End     = "end"     // no fault goes on any more, and every key was read
)

// Outcomes of a call. Only a known outcome says that there was an answer.
const (
	OK      = "ok"      // it took effect
	Denied  = "denied"  // a condition did not hold, as Code tells, and it took no effect
	Refused = "refused" // it took no effect
	Unknown = "unknown" // it took effect, or will, or never does
)

// Codes of what was denied.
const (
	VersionMismatch = "version_mismatch"
	NotFound        = "document_not_found"
	LeaseLost       = "lease_lost"
	LockHeld        = "lock_held"
)

// Jump marks a fault in which the time of a server may have jumped, so that leases ended early.
const Jump = "jump"

// Kinds of operations, with what is asked and what is told.
const (
	Get       = "get"       // told: By, N, Version, Etag
	Put       = "put"       // asked: N, TTLMs, conditions; told: Version, Etag
	Increment = "increment" // asked: N, conditions; told: Version, Etag
	Delete    = "delete"    // asked: conditions
	Acquire   = "acquire"   // asked: Shared, TTLMs; told: Token, Fencing
	Renew     = "renew"     // asked: Token, TTLMs; told: Fencing
	Release   = "release"   // asked: Token
	Show      = "show"      // told: Holders
	Break     = "break"     // told: N, the number of holders
)

// GroupKeys is the number of keys in a group. No call concerns two groups.
const GroupKeys = 2

// Record is a call and its answer, as a client saw them. Times are nanoseconds since the begin of the run.
type Record struct {
	Kind    string `json:"kind"`
	Client  int    `json:"client"`
	Call    int64  `json:"call"`
	Return  int64  `json:"return"`
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	Group   string `json:"group,omitempty"`
	// Name is that of the call: owner of its grant, content of what it writes, and, if it is Repeatable, the
	// text by which the server knows a repeat. Only repeats have the same.
	Name        string      `json:"name,omitempty"`
	Repeatable  bool        `json:"repeatable,omitempty"`
	Transaction bool        `json:"transaction,omitempty"`
	Duplicate   bool        `json:"duplicate,omitempty"` // the transaction was done by an earlier request
	Operations  []Operation `json:"operations,omitempty"`
	Failed      int         `json:"failed,omitempty"` // the operation that was denied
	Sum         int64       `json:"sum,omitempty"`
	Note        string      `json:"note,omitempty"`

	// remembered says that other calls may be the same transaction, which is done once.
	remembered bool
	// jumps are the faults of the history by which leases may have ended early.
	jumps []Record
}

// Operation is what is done to one document or to locks, and what was told of it.
type Operation struct {
	Kind      string   `json:"kind"`
	Keys      []int    `json:"keys,omitempty"` // numbers in the group
	N         int64    `json:"n,omitempty"`
	TTLMs     int64    `json:"ttl_ms,omitempty"`
	WaitMs    int64    `json:"wait_ms,omitempty"`
	Shared    bool     `json:"shared,omitempty"`
	IfVersion uint64   `json:"if_version,omitempty"`
	IfEtag    uint64   `json:"if_etag,omitempty"`
	IfExists  bool     `json:"if_exists,omitempty"`
	IfAbsent  bool     `json:"if_absent,omitempty"`
	Token     string   `json:"token,omitempty"`
	By        string   `json:"by,omitempty"`      // name of the call that wrote the document as a whole
	Version   uint64   `json:"version,omitempty"` // told, also of the document that a condition did not fit
	Etag      uint64   `json:"etag,omitempty"`
	Fencing   uint64   `json:"fencing,omitempty"`
	Holders   []Holder `json:"holders,omitempty"`
	Holder    string   `json:"holder,omitempty"` // owner of the grant that is in the way
}

// Holder is a grant as an answer shows it.
type Holder struct {
	Owner   string `json:"owner"`
	Fencing uint64 `json:"fencing"`
}

func (operation Operation) reads() bool {
	return operation.Kind == Get || operation.Kind == Show || operation.Kind == Renew
}

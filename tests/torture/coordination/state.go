package coordination

import (
	"fmt"
	"slices"
)

// operationsMax is the most operations of a transaction.
const operationsMax = 3

// document is one as the model knows it. Version and ETag are 0 while no answer has told them.
type document struct {
	present bool
	version uint64
	etag    uint64
	after   uint64 // the ETag is larger than this
	by      string // call that wrote it as a whole
	last    string // call that changed it last
	n       int64
	end     int64 // when its time may be over at the earliest; 0: it stays
}

// grant is one that is held, as far as anybody has told.
type grant struct {
	owner   string
	token   string // empty: no answer has told it
	fencing uint64 // 0: no answer has told it
	after   uint64 // the fencing token is larger than this
	keys    [GroupKeys]bool
	shared  bool
	end     int64 // when it may be over at the earliest
}

// result is what every answer to a transaction that is done once tells of an operation.
type result struct {
	version, etag, fencing uint64
	token                  string
}

// outcome is that of a transaction which is done once.
type outcome struct {
	name    string
	told    bool // by an answer
	results [operationsMax]result
}

// state is that of one group of keys.
type state struct {
	documents [GroupKeys]document
	grants    []grant // by owner
	done      []outcome
	released  []string // tokens of grants whose release may be repeated
	highest   uint64   // of all ETags and fencing tokens that were told as new ones
	since     int64    // it is this time at least, since something that was to last until then is over
}

func (now state) clone() state {
	now.grants = slices.Clone(now.grants)
	now.done = slices.Clone(now.done)
	now.released = slices.Clone(now.released)
	return now
}

func equal(a, b any) bool {
	one, other := a.(state), b.(state)
	return one.documents == other.documents && one.highest == other.highest && one.since == other.since &&
		slices.Equal(one.grants, other.grants) && slices.Equal(one.done, other.done) &&
		slices.Equal(one.released, other.released)
}

func (now state) String() string {
	text := ""
	for key, document := range now.documents {
		text += fmt.Sprintf("%d: %+v; ", key, document)
	}
	return fmt.Sprintf("%sgrants %+v; highest %d; since %.3f s", text, now.grants, now.highest,
		float64(now.since)/1e9)
}

// learn is whether a number that was told can be this one, which it is from now on. 0: it was not told, or is
// not known.
func learn(known *uint64, after, told uint64) bool {
	if told == 0 {
		return true
	}
	if *known == 0 && told > after {
		*known = told
	}
	return *known == told
}

// holding returns the place of the grant with this token; -1: it is not held.
func (now *state) holding(token string) int {
	return slices.IndexFunc(now.grants, func(grant grant) bool { return token != "" && grant.token == token })
}

// of returns the place of a grant of this owner; -1: there is none.
func (now *state) of(owner string) int {
	return slices.IndexFunc(now.grants, func(grant grant) bool { return grant.owner == owner })
}

// add keeps grants in the order of their owners, so that equal states look alike.
func (now *state) add(new grant) {
	at := slices.IndexFunc(now.grants, func(grant grant) bool { return grant.owner >= new.owner })
	if at < 0 {
		at = len(now.grants)
	}
	now.grants = slices.Insert(now.grants, at, new)
}

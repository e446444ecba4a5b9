package coordination

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// clockMargin is how far the time of a server may be from that of the clients within one lease.
const clockMargin = 50 * time.Millisecond

// moment is a state that changes while one call takes effect.
type moment struct {
	state
	record *Record
	told   bool // by an answer
}

// step says whether a call can be answered like this, and what is there afterwards.
func step(before state, record Record) (bool, state) {
	if record.Return < before.since {
		return false, before
	}
	now := &moment{before.clone(), &record, record.Outcome == OK}
	if record.Outcome == Denied {
		operation := &record.Operations[record.Failed]
		return !now.isDone() && now.denies(operation), now.state
	}
	if now.isDone() {
		return now.tells(), now.state
	}
	if record.Duplicate {
		return false, before
	}
	for at := range record.Operations {
		if !now.admits(&record.Operations[at]) {
			return !now.told, before // of unknown outcome: it was denied, if it has ever come
		}
	}
	highest := now.highest
	for at := range record.Operations {
		if !now.does(&record.Operations[at], highest) {
			return false, before
		}
	}
	if record.remembered {
		now.remember()
	}
	return true, now.state
}

// isDone says whether this is a transaction that an earlier request has done.
func (now *moment) isDone() bool {
	return now.record.remembered && slices.ContainsFunc(now.done, now.isOutcome)
}

func (now *moment) isOutcome(done outcome) bool { return done.name == now.record.Name }

// tells says whether the answer to a repeat can be that of the first request.
func (now *moment) tells() bool {
	done := &now.done[slices.IndexFunc(now.done, now.isOutcome)]
	if !now.told {
		return true
	}
	results := resultsOf(now.record)
	if done.told {
		return now.record.Duplicate && done.results == results
	}
	done.told, done.results = true, results
	legal := now.record.Duplicate
	for _, operation := range now.record.Operations {
		legal = legal && now.recognizes(&operation)
	}
	return legal
}

// recognizes lets the state know what an operation, which was done before, has made: if that is still there.
func (now *moment) recognizes(operation *Operation) bool {
	switch operation.Kind {
	case Put, Increment:
		document := &now.documents[operation.Keys[0]]
		if !document.present || document.last != now.record.Name {
			return true
		}
		return learn(&document.etag, document.after, operation.Etag) &&
			learn(&document.version, 0, operation.Version)
	case Acquire:
		if at := now.of(now.record.Name); at >= 0 {
			grant := &now.grants[at]
			grant.token = operation.Token
			return learn(&grant.fencing, grant.after, operation.Fencing)
		}
	}
	return true
}

func (now *moment) remember() {
	done := outcome{name: now.record.Name, told: now.told}
	if now.told {
		done.results = resultsOf(now.record)
	}
	now.done = append(now.done, done)
	slices.SortFunc(now.done, func(a, b outcome) int { return strings.Compare(a.name, b.name) })
}

func resultsOf(record *Record) (results [operationsMax]result) {
	for at, told := range record.Operations {
		switch told.Kind {
		case Put, Increment:
			results[at] = result{version: told.Version, etag: told.Etag}
		case Acquire:
			results[at] = result{fencing: told.Fencing, token: told.Token}
		}
	}
	return results
}

// takes says whether this can be the number of something new.
func (now *moment) takes(number, highest uint64) bool {
	if number == 0 {
		return !now.told
	}
	legal := number > highest
	now.highest = max(now.highest, number)
	return legal
}

// isOver says whether what was to last until this time may be over, and lets it be so.
func (now *moment) isOver(end int64) bool {
	if now.record.Return < end {
		return false
	}
	now.since = max(now.since, end)
	return true
}

// lasts is until when a lease lasts at least. It counts from a moment of the call that may be before others
// see what the call has done: a record has its time before it is on the disk.
func (now *moment) lasts(operation *Operation) int64 {
	return lasting(now.record.Call, operation.TTLMs, now.record.jumps)
}

// lasting is until when a lease lasts at least that begins at this time: a time of a server that jumps may
// end it.
func lasting(begin, ttlMs int64, jumps []Record) int64 {
	end := begin + ttlMs*int64(time.Millisecond) - int64(clockMargin)
	for _, jump := range jumps {
		if jump.Call <= end && jump.Return >= begin {
			end = min(end, max(jump.Call, begin))
		}
	}
	return end
}

// String tells a call for the page that is drawn.
func (record Record) String() string {
	text := record.Name
	for _, operation := range record.Operations {
		text += fmt.Sprintf(" %s %v", operation.Kind, operation.Keys)
		for _, part := range []struct {
			name  string
			value uint64
		}{
			{"if version", operation.IfVersion}, {"if etag", operation.IfEtag}, {"version", operation.Version},
			{"etag", operation.Etag}, {"fencing", operation.Fencing},
		} {
			if part.value > 0 {
				text += fmt.Sprintf(" %s %d", part.name, part.value)
			}
		}
		text += fmt.Sprintf(" %s %s %d %v;", operation.Token, operation.By, operation.N, operation.Holders)
	}
	return text + " -> " + record.Outcome + " " + record.Code
}

package coordination

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// overdue is how long after its time a grant may be shown: the time of a cluster is up to a second behind.
const overdue = 2 * time.Second

// told is an ETag or a fencing token in an answer.
type told struct {
	number uint64
	isNew  bool // it was made by this call
	record *Record
}

// numbers returns all that answers tell. Only a call that was made once is known to have made its number.
func numbers(records []Record) []told {
	requests := map[string]int{}
	for _, record := range records {
		requests[record.Name]++
	}
	var found []told
	for at := range records {
		record := &records[at]
		if record.Kind != Called || record.Outcome != OK {
			continue
		}
		for _, operation := range record.Operations {
			made := operation.Kind == Put || operation.Kind == Increment || operation.Kind == Acquire
			isNew := made && requests[record.Name] == 1
			for _, number := range []uint64{operation.Etag, operation.Fencing} {
				if number != 0 {
					found = append(found, told{number, isNew, record})
				}
			}
			for _, holder := range operation.Holders {
				found = append(found, told{holder.Fencing, false, record})
			}
		}
	}
	return found
}

// numbersGrow finds an ETag or a fencing token that is not larger than one which was told before the call
// that has made it. All keys of a namespace take them from one sequence.
func numbersGrow(records []Record) []string {
	all := numbers(records)
	byReturn := slices.Clone(all)
	slices.SortFunc(byReturn, func(a, b told) int { return int(a.record.Return - b.record.Return) })
	slices.SortFunc(all, func(a, b told) int { return int(a.record.Call - b.record.Call) })
	var problems []string
	var highest told
	for _, next := range all {
		for len(byReturn) > 0 && byReturn[0].record.Return < next.record.Call {
			if byReturn[0].number > highest.number {
				highest = byReturn[0]
			}
			byReturn = byReturn[1:]
		}
		if next.isNew && next.number <= highest.number {
			problems = append(problems, fmt.Sprintf("%d of %s is not larger than %d of %s, which was told before",
				next.number, next.record.Name, highest.number, highest.record.Name))
		}
	}
	return problems
}

// holding is the time in which a holder could be sure of its lock, by its own clock.
type holding struct {
	record     *Record
	operation  *Operation
	begin, end int64
}

// holdersApart finds two holders of one lock at a time, of which one is to be alone.
func holdersApart(records []Record) []string {
	jumps := jumpsOf(records)
	var problems []string
	for group, records := range byGroup(records) {
		holdings := holdings(records, jumps)
		for at, one := range holdings {
			for _, other := range holdings[at+1:] {
				meet := one.begin < other.end && other.begin < one.end
				shared := one.operation.Shared && other.operation.Shared
				isSame := one.operation.Token == other.operation.Token
				if meet && !shared && !isSame && sameKey(one.operation, other.operation) {
					problems = append(problems, fmt.Sprintf("group %s: %s and %s hold a lock at the same time",
						group, one.record.Name, other.record.Name))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

func sameKey(one, other *Operation) bool {
	return slices.ContainsFunc(one.Keys, func(key int) bool { return slices.Contains(other.Keys, key) })
}

// holdings returns those of all grants, without what renewals add.
func holdings(records []Record, jumps []Record) []holding {
	var found []holding
	for at := range records {
		record := &records[at]
		if record.Outcome != OK || record.Duplicate { // a grant in an outcome that is told again may have ended
			continue
		}
		for at := range record.Operations {
			if operation := &record.Operations[at]; operation.Kind == Acquire {
				end := lasting(record.Call, operation.TTLMs, jumps)
				found = append(found, holding{record, operation, record.Return, end})
			}
		}
	}
	for at := range found {
		found[at].end = min(found[at].end, givenUp(records, found[at]))
	}
	return found
}

// givenUp is when a grant was released, or broken by anybody, at the earliest.
func givenUp(records []Record, holding holding) int64 {
	end, held := int64(math.MaxInt64), holding.operation
	for _, record := range records {
		isBefore := record.Outcome == OK && record.Return < holding.record.Call
		if isBefore || record.Outcome == Refused || record.Outcome == Denied {
			continue
		}
		for at := range record.Operations {
			operation := &record.Operations[at]
			releases := operation.Kind == Release && operation.Token == held.Token
			if releases || operation.Kind == Break && sameKey(operation, held) {
				end = min(end, record.Call)
			}
		}
	}
	return end
}

// grantsEnd finds grants that are held, or in the way of others, long after their time.
func grantsEnd(records []Record) []string {
	var problems []string
	for group, records := range byGroup(records) {
		ends := latestEnds(records)
		for _, record := range records {
			for _, owner := range heldIn(record) {
				if end, known := ends[owner]; known && record.Call > end+int64(overdue) {
					problems = append(problems, fmt.Sprintf("group %s: %s has a grant %.3f s after its time, as %s is told",
						group, owner, float64(record.Call-end)/1e9, record.Name))
				}
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// latestEnds returns when the grant of each owner is over at the latest: of those whose claims and renewals
// were all answered.
func latestEnds(records []Record) map[string]int64 {
	owners, ends, open := map[string]string{}, map[string]int64{}, map[string]bool{}
	for _, record := range records {
		for _, operation := range record.Operations {
			if operation.Kind == Acquire && record.Outcome == OK {
				owners[operation.Token] = record.Name
			}
		}
	}
	for _, record := range records {
		for _, operation := range record.Operations {
			owner := record.Name
			if operation.Kind == Renew {
				owner = owners[operation.Token]
			} else if operation.Kind != Acquire {
				continue
			}
			open[owner] = open[owner] || record.Outcome == Unknown
			if record.Outcome == OK {
				ends[owner] = max(ends[owner], record.Return+operation.TTLMs*int64(time.Millisecond))
			}
		}
	}
	for owner := range open {
		if open[owner] {
			delete(ends, owner)
		}
	}
	return ends
}

// heldIn returns the owners of grants that an answer says are held.
func heldIn(record Record) []string {
	var owners []string
	for _, operation := range record.Operations {
		if operation.Holder != "" {
			owners = append(owners, operation.Holder)
		}
		for _, holder := range operation.Holders {
			owners = append(owners, holder.Owner)
		}
	}
	return owners
}

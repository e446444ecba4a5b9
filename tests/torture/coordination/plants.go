package coordination

import (
	"maps"
	"slices"
)

// afterwards is the time from the end of a history to what is planted: no lease of its clients lasts so long.
const afterwards = 10_000_000_000

// Plant is a fault that is written into a history without fault, which the checks have to find.
type Plant struct {
	Name string
	// apply returns the changed history; nil: the history has no place for it.
	apply func([]Record) []Record
}

// Plants come after all that has happened, in one group each: what they tell is new but for the fault.
var Plants = []Plant{
	{"stale read", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			for _, record := range end.records {
				read, isRead := single(record, Get)
				if last := end.last[keyOf(read)]; isRead && last.Etag > read.Etag {
					return []Record{end.call(record.Operations...)}
				}
			}
			return nil
		})
	}},
	{"read of a document that was deleted", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			for _, record := range end.records {
				remove, isDeleted := single(record, Delete)
				_, isThere := end.last[keyOf(remove)]
				if before := end.read(record); isDeleted && !isThere && before != nil {
					return []Record{end.call(*before)}
				}
			}
			return nil
		})
	}},
	{"lost fence", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			for _, record := range end.records {
				late, isPut := denied(record, Put, LeaseLost)
				last, isThere := end.last[keyOf(late)]
				if isPut && late.Token != "" && isThere {
					late.Version, late.Etag = last.Version+1, end.number
					return []Record{end.call(late)}
				}
			}
			return nil
		})
	}},
	{"lost update", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			for _, record := range end.records {
				put, isPut := single(record, Put)
				last, isThere := end.last[keyOf(put)]
				if isPut && put.IfEtag != 0 && isThere && last.Etag > put.Etag {
					put.Version, put.Etag = last.Version+1, end.number
					return []Record{end.call(put)}
				}
			}
			return nil
		})
	}},
	{"acknowledged write lost", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			for key, last := range end.last {
				put := Operation{
					Kind: Put, Keys: []int{key}, Version: last.Version + 1, Etag: end.number,
				}
				return []Record{end.call(put), end.then(last)}
			}
			return nil
		})
	}},
	{"half a transaction", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			first, hasFirst := end.last[0]
			second, hasSecond := end.last[1]
			if !hasFirst || !hasSecond {
				return nil
			}
			both := end.call(
				Operation{Kind: Put, Keys: []int{0}, Version: first.Version + 1, Etag: end.number},
				Operation{Kind: Put, Keys: []int{1}, Version: second.Version + 1, Etag: end.number + 1},
			)
			both.Transaction = true
			done := Operation{Kind: Get, Keys: []int{0}, Version: first.Version + 1, Etag: end.number, By: both.Name}
			return []Record{both, end.then(done), end.then(second)}
		})
	}},
	{"two holders", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			if end.mayBreak {
				return nil
			}
			claim := Operation{Kind: Acquire, Keys: []int{0}, TTLMs: 60_000, Token: "planted", Fencing: end.number}
			other := claim
			other.Token, other.Fencing = "planted too", end.number+1
			return []Record{end.call(claim), end.then(other)}
		})
	}},
	{"grant that was lost before its time", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			if end.mayBreak {
				return nil
			}
			claim := Operation{Kind: Acquire, Keys: []int{0}, TTLMs: 60_000, Token: "planted", Fencing: end.number}
			renewal := end.then(Operation{Kind: Renew, Token: "planted", TTLMs: 60_000})
			renewal.Outcome, renewal.Code = Denied, LeaseLost
			return []Record{end.call(claim), renewal}
		})
	}},
	{"grant that does not end", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			claim := Operation{Kind: Acquire, Keys: []int{0}, TTLMs: 100, Token: "planted", Fencing: end.number}
			shown := Holder{Owner: "planted", Fencing: end.number}
			next := end.then(Operation{Kind: Show, Keys: []int{0}, Holders: []Holder{shown}})
			next.Call, next.Return = next.Call+afterwards, next.Return+afterwards
			return []Record{end.call(claim), next}
		})
	}},
	{"fencing token that does not grow", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			claim := Operation{Kind: Acquire, Keys: []int{0}, TTLMs: 1, Token: "planted", Fencing: end.number}
			other := claim
			other.Token = "planted too"
			next := end.then(other)
			next.Call, next.Return = next.Call+afterwards, next.Return+afterwards
			return []Record{end.call(claim), next}
		})
	}},
	{"transaction that is done twice", func(records []Record) []Record {
		return plant(records, func(end ending) []Record {
			last, isThere := end.last[0]
			if !isThere {
				return nil
			}
			done := end.call(Operation{Kind: Put, Keys: []int{0}, Version: last.Version + 1, Etag: end.number})
			done.Transaction, done.Repeatable = true, true
			again := end.then(Operation{Kind: Put, Keys: []int{0}, Version: last.Version + 2, Etag: end.number + 1})
			again.Transaction, again.Repeatable, again.Name = true, true, done.Name
			return []Record{done, again}
		})
	}},
	{"sum that changes", func(records []Record) []Record {
		at := slices.IndexFunc(records, func(record Record) bool { return record.Kind == Balance })
		if at < 0 {
			return nil
		}
		other := records[at]
		other.Sum++
		return append(slices.Clone(records), other)
	}},
}

// ending is a group in the end.
type ending struct {
	records []Record // of the group
	last    map[int]Operation
	number  uint64 // that the next thing may have which is new
	// mayBreak says that somebody has broken a lock with unknown outcome, so that any grant may end.
	mayBreak bool
	now      int64
}

// openMax is the most calls of unknown outcome in a group that is changed: each doubles the search that has
// to show that there is no order.
const openMax = 4

// plant adds to the first group in which the fault finds a place, of those of which little is unknown.
func plant(records []Record, fault func(ending) []Record) []Record {
	groups := byGroup(records)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		all := calls(groups[name], nil)
		if len(all)-len(answered(all)) > openMax {
			continue
		}
		if more := fault(endingOf(groups[name], records)); more != nil {
			return append(slices.Clone(records), more...)
		}
	}
	return nil
}

func endingOf(group, all []Record) ending {
	end := ending{records: group, last: map[int]Operation{}}
	for _, record := range all {
		end.now = max(end.now, record.Return)
	}
	for _, number := range numbers(all) {
		end.number = max(end.number, number.number)
	}
	end.number, end.now = end.number+1000, end.now+afterwards
	var until [GroupKeys]int64
	for _, record := range group {
		for _, operation := range record.Operations {
			end.mayBreak = end.mayBreak || operation.Kind == Break && record.Outcome == Unknown
			if operation.Kind == Get && record.Outcome != Unknown && record.Call >= until[operation.Keys[0]] {
				until[operation.Keys[0]] = record.Call
				delete(end.last, operation.Keys[0])
				if record.Outcome == OK {
					end.last[operation.Keys[0]] = operation
				}
			}
		}
	}
	return end
}

// call is one that succeeds after all others.
func (end ending) call(operations ...Operation) Record {
	return Record{
		Kind: Called, Group: end.records[0].Group, Outcome: OK, Name: "planted", Operations: operations,
		Call: end.now + 1, Return: end.now + 2,
	}
}

// then is one after that.
func (end ending) then(operations ...Operation) Record {
	record := end.call(operations...)
	record.Name, record.Call, record.Return = "planted then", record.Call+2, record.Return+2
	return record
}

// read returns what was read of the document before it was deleted; nil: nothing.
func (end ending) read(deletion Record) *Operation {
	for _, record := range end.records {
		read, isRead := single(record, Get)
		if isRead && keyOf(read) == keyOf(deletion.Operations[0]) && record.Return < deletion.Call {
			return &read
		}
	}
	return nil
}

// keyOf is the first key of an operation; -1: it has none.
func keyOf(operation Operation) int {
	if len(operation.Keys) == 0 {
		return -1
	}
	return operation.Keys[0]
}

// single returns the operation of a call that succeeded and has one of this kind alone.
func single(record Record, kind string) (Operation, bool) {
	operation := record.Operations[0]
	return operation, record.Outcome == OK && !record.Transaction && operation.Kind == kind
}

// denied returns the operation of a call that was denied, and has one of this kind alone.
func denied(record Record, kind, code string) (Operation, bool) {
	operation := record.Operations[0]
	isDenied := record.Outcome == Denied && record.Code == code && !record.Transaction
	return operation, isDenied && operation.Kind == kind
}

// Found tells of each plant that has a place in this history, which has no fault of its own, whether the
// checks find it.
func Found(records []Record) map[string]bool {
	found := map[string]bool{}
	for _, plant := range Plants {
		if changed := plant.apply(records); changed != nil {
			found[plant.Name] = len(Problems(ofLast(changed))) > 0
		}
	}
	return found
}

// ofLast returns what concerns the group of the last record.
func ofLast(records []Record) []Record {
	group := records[len(records)-1].Group
	return slices.DeleteFunc(slices.Clone(records), func(record Record) bool {
		return record.Group != group && (record.Kind == Called || record.Kind == Balance)
	})
}

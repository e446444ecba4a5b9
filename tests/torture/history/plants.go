package history

import (
	"math"
	"slices"
)

// Plant is a fault that is written into a history without fault, which the checks have to find.
type Plant struct {
	Name string
	// apply returns the changed history; nil: the history has no place for it.
	apply func([]Record) []Record
}

// Plants are at least one for each check.
var Plants = []Plant{
	{"acknowledged message lost", func(records []Record) []Record {
		key := keyOf(records, Ack, OK)
		return without(records, func(record Record) bool { return record.Key == key && record.Kind != Send })
	}},
	{"acknowledged message never delivered", func(records []Record) []Record {
		key := keyOf(records, Ack, OK)
		changed := without(records, func(record Record) bool {
			return record.Key == key && record.Kind != Send && record.Kind != Listed
		})
		return change(changed, Listed, func(listed *Record) bool {
			listed.State = Pending
			return listed.Key == key
		})
	}},
	{"settled message delivered again", func(records []Record) []Record {
		return repeat(records, Delivery, func(delivery *Record) { delivery.Receipt += "-again" })
	}},
	{"message settled twice", func(records []Record) []Record {
		return repeat(records, Ack, func(*Record) {})
	}},
	{"ack by a receipt of nobody", func(records []Record) []Record {
		return change(records, Ack, func(ack *Record) bool {
			ack.Receipt += "-forged"
			return ack.Outcome == OK
		})
	}},
	{"idempotency key forgotten", func(records []Record) []Record {
		return repeat(records, Send, func(send *Record) { send.ID, send.Duplicate = send.ID+"-again", false })
	}},
	{"id of two messages", func(records []Record) []Record {
		first := slices.IndexFunc(records, isNew)
		return change(records, Send, func(send *Record) bool {
			if !isNew(*send) || send.Key == records[first].Key {
				return false
			}
			send.ID = records[first].ID
			return true
		})
	}},
	{"receipt of two deliveries", func(records []Record) []Record {
		return repeat(records, Delivery, func(*Record) {})
	}},
	{"id before that of an older message", func(records []Record) []Record {
		return append(slices.Clone(records), Record{
			Kind: Send, Outcome: OK, Key: "planted", ID: "!", Call: math.MaxInt64 - 1, Return: math.MaxInt64,
		})
	}},
	{"result older than the ack", func(records []Record) []Record {
		return repeat(records, Result, func(read *Record) { read.State, read.Result = Pending, "" })
	}},
	{"result of nobody", func(records []Record) []Record {
		return change(records, Result, func(read *Record) bool {
			read.Result += "-forged"
			return read.State == Done
		})
	}},
	{"lease that ended early", func(records []Record) []Record {
		held := slices.IndexFunc(records, isHeld)
		if held < 0 {
			return nil
		}
		lost := records[held]
		lost.Kind, lost.Outcome, lost.LeaseMs = Nack, Lost, 0
		lost.Call, lost.Return = lost.Return+1, lost.Return+2
		return slices.Insert(slices.Clone(records), held+1, lost)
	}},
	{"figures older than an answer", func(records []Record) []Record {
		return repeat(records, Figures, func(read *Record) { read.Stored-- })
	}},
	{"message that is counted and not listed", func(records []Record) []Record {
		last := slices.IndexFunc(records, func(record Record) bool { return record.Kind == Listed })
		return slices.Delete(slices.Clone(records), last, last+1)
	}},
}

// Missed returns the plants that the checks do not find in this history, which has no fault of its own.
func Missed(records []Record) []string {
	var missed []string
	for _, plant := range Plants {
		changed := plant.apply(records)
		if changed == nil {
			missed = append(missed, plant.Name+" (the history has no place for it)")
		} else if len(Problems(changed)) == 0 {
			missed = append(missed, plant.Name)
		}
	}
	return missed
}

func isNew(record Record) bool {
	return record.Kind == Send && record.Outcome == OK && !record.Duplicate
}

// isHeld says whether the answer came so early that most of the lease was left.
func isHeld(record Record) bool {
	return record.Kind == Delivery && record.Return-record.Call < record.LeaseMs*500_000
}

// keyOf returns the message of the first such record.
func keyOf(records []Record, kind, outcome string) string {
	return known(records, kind, outcome)[0].Key
}

func without(records []Record, gone func(Record) bool) []Record {
	return slices.DeleteFunc(slices.Clone(records), gone)
}

// change changes the first record of the kind for which the change says that it fits.
func change(records []Record, kind string, fits func(*Record) bool) []Record {
	changed := slices.Clone(records)
	for at, record := range changed {
		if record.Kind == kind && fits(&record) {
			changed[at] = record
			return changed
		}
	}
	return nil
}

// repeat makes the last call of the kind again at the end of all, with another answer.
func repeat(records []Record, kind string, change func(*Record)) []Record {
	found := known(records, kind, OK)
	if len(found) == 0 {
		return nil
	}
	again := found[len(found)-1]
	again.Call, again.Return = math.MaxInt64-1, math.MaxInt64-1
	change(&again)
	return append(slices.Clone(records), again)
}

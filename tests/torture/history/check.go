package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// problemsMax is the most problems of one kind that are told.
	problemsMax = 5
	// clockMargin is how far the time of a server may be from that of the clients within one lease.
	clockMargin = 50 * time.Millisecond
	// searchMax bounds the search for an order of one message's calls.
	searchMax = 30 * time.Second
)

// Problems tells what a history must not have; none: it is as it should be. One without an end is checked as
// far as it goes.
func Problems(records []Record) []string {
	messages := byMessage(records)
	checks := []func([]Record, map[string][]Record) []string{
		notLinearizable, uniqueNames, idsInOrder, leasesKept, figuresAgree, unexpected,
	}
	var problems []string
	if slices.ContainsFunc(records, func(record Record) bool { return record.Kind == End }) {
		checks = append(checks, lost, listsAgree)
	} else {
		problems = append(problems, "the history has no end: nobody can say whether anything is lost")
	}
	for _, check := range checks {
		found := check(records, messages)
		slices.Sort(found)
		if more := len(found) - problemsMax; more > 0 {
			found = append(found[:problemsMax], fmt.Sprintf("... and %d more like these", more))
		}
		problems = append(problems, found...)
	}
	return problems
}

// byMessage returns the records of each message, by its key.
func byMessage(records []Record) map[string][]Record {
	messages := map[string][]Record{}
	for _, record := range records {
		if record.Key != "" {
			messages[record.Key] = append(messages[record.Key], record)
		}
	}
	return messages
}

// known returns the records of a kind with this outcome.
func known(records []Record, kind, outcome string) []Record {
	var found []Record
	for _, record := range records {
		if record.Kind == kind && record.Outcome == outcome {
			found = append(found, record)
		}
	}
	return found
}

// lost finds messages that were acknowledged and are not in the list at the end, or were never worked.
func lost(_ []Record, messages map[string][]Record) []string {
	var problems []string
	for key, records := range messages {
		if len(known(records, Send, OK)) == 0 {
			continue
		}
		listed := known(records, Listed, OK)
		switch {
		case len(listed) == 0:
			problems = append(problems, fmt.Sprintf("lost: %s was acknowledged and is gone", key))
		case listed[0].State != Done:
			problems = append(problems, fmt.Sprintf("lost: %s was acknowledged and nobody gets it", key))
		}
	}
	return problems
}

// WithoutOrder returns the messages whose calls, in whatever order, cannot have been answered like this.
func WithoutOrder(records []Record) []string {
	var keys []string
	for key, records := range byMessage(records) {
		if porcupine.CheckOperationsTimeout(model, operations(records), searchMax) != porcupine.Ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func notLinearizable(records []Record, _ map[string][]Record) []string {
	var problems []string
	for _, key := range WithoutOrder(records) {
		problems = append(problems, "the calls of "+key+" have no order")
	}
	return problems
}

// Draw writes a page that shows the calls of one message, and how far an order of them was found.
func Draw(records []Record, key, path string) error {
	operations := operations(byMessage(records)[key])
	_, found := porcupine.CheckOperationsVerbose(model, operations, searchMax)
	return porcupine.VisualizePath(model, found, path)
}

// uniqueNames finds an id of two messages, and a receipt of two deliveries.
func uniqueNames(records []Record, _ map[string][]Record) []string {
	var problems []string
	keys, receipts := map[string]string{}, map[string]bool{}
	for _, record := range records {
		if record.ID != "" && record.Outcome == OK {
			if other, taken := keys[record.ID]; taken && other != record.Key {
				problems = append(problems, fmt.Sprintf("id %s is of %s and of %s", record.ID, other, record.Key))
			}
			keys[record.ID] = record.Key
		}
		if record.Kind == Delivery {
			if receipts[record.Receipt] {
				problems = append(problems, fmt.Sprintf("receipt %s is of two deliveries", record.Receipt))
			}
			receipts[record.Receipt] = true
		}
	}
	return problems
}

// idsInOrder finds a message that was sent after another was stored, and sorts before it.
func idsInOrder(records []Record, _ map[string][]Record) []string {
	var sends []Record
	for _, send := range known(records, Send, OK) {
		if !send.Duplicate {
			sends = append(sends, send)
		}
	}
	byReturn := slices.Clone(sends)
	slices.SortFunc(byReturn, func(a, b Record) int { return int(a.Return - b.Return) })
	slices.SortFunc(sends, func(a, b Record) int { return int(a.Call - b.Call) })
	var problems []string
	var highest Record
	for _, send := range sends {
		for len(byReturn) > 0 && byReturn[0].Return < send.Call {
			if byReturn[0].ID > highest.ID {
				highest = byReturn[0]
			}
			byReturn = byReturn[1:]
		}
		if send.ID < highest.ID {
			problems = append(problems, fmt.Sprintf("id %s of %s is not behind %s of %s, which was stored before",
				send.ID, send.Key, highest.ID, highest.Key))
		}
	}
	return problems
}

// leasesKept finds a message that was given to somebody else, or whose receipt was refused, while its lease
// ran and its holder had not settled. A lease during which the time jumped is not judged.
func leasesKept(records []Record, messages map[string][]Record) []string {
	var jumps []Record
	for _, record := range records {
		if record.Kind == Fault && record.Code == Jump {
			jumps = append(jumps, record)
		}
	}
	var problems []string
	for key, records := range messages {
		for _, held := range known(records, Delivery, OK) {
			end := held.Call + held.LeaseMs*int64(time.Millisecond) - int64(clockMargin)
			jumped := slices.ContainsFunc(jumps, func(jump Record) bool {
				return jump.Call <= end && jump.Return >= held.Call
			})
			if !jumped && endedEarly(records, held, end) {
				problems = append(problems, fmt.Sprintf("the lease of %s (%s) ended early", key, held.Receipt))
			}
		}
	}
	return problems
}

// endedEarly says whether a lease that runs until `end` at least was over before.
func endedEarly(records []Record, held Record, end int64) bool {
	for _, record := range records {
		settles := (record.Kind == Ack || record.Kind == Nack) && record.Receipt == held.Receipt
		if settles && record.Outcome != Lost && record.Outcome != Refused {
			end = min(end, record.Call)
		}
	}
	return slices.ContainsFunc(records, func(record Record) bool {
		other := record.Kind == Delivery && record.Receipt != held.Receipt && record.Call > held.Return
		refused := record.Outcome == Lost && record.Receipt == held.Receipt
		return (other || refused) && record.Return < end
	})
}

// unexpected finds answers that no call of a run should get.
func unexpected(records []Record, _ map[string][]Record) []string {
	var problems []string
	for _, record := range records {
		if strings.HasPrefix(record.Code, "unexpected") || record.Outcome == Denied {
			problems = append(problems, fmt.Sprintf("%s of %s: %s", record.Kind, record.Key, record.Code))
		}
	}
	return problems
}

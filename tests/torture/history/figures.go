package history

import (
	"fmt"
	"math"
	"slices"
)

// A count that only grows: each thing counts from some time between its two times on.
type count struct{ earliest, latest []int64 }

// sort prepares for bounds.
func (count *count) sort() {
	slices.Sort(count.earliest)
	slices.Sort(count.latest)
}

// bounds returns the least and the most that a read may tell which was called and answered at these times.
func (count *count) bounds(called, answered int64) (least, most int) {
	least, _ = slices.BinarySearch(count.latest, called)
	most, _ = slices.BinarySearch(count.earliest, answered+1)
	return least, most
}

// add counts a message by the calls that each may have made it count.
func (count *count) add(calls []Record) {
	earliest, latest := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, call := range calls {
		if call.Outcome == OK || call.Outcome == Unknown || call.Outcome == Already {
			earliest = min(earliest, call.Call)
		}
		if call.Outcome == OK || call.Outcome == Already {
			latest = min(latest, call.Return)
		}
	}
	count.earliest = append(count.earliest, earliest)
	count.latest = append(count.latest, latest)
}

// figuresAgree finds counts of a queue that were read and cannot have been true at any moment of the read, or
// that fell from one read to the next.
func figuresAgree(records []Record, messages map[string][]Record) []string {
	stored, done := map[string]*count{}, map[string]*count{}
	for _, calls := range messages {
		queue := calls[0].Queue
		if stored[queue] == nil {
			stored[queue], done[queue] = &count{}, &count{}
		}
		stored[queue].add(ofKind(calls, Send))
		done[queue].add(ofKind(calls, Ack))
	}
	for queue := range stored {
		stored[queue].sort()
		done[queue].sort()
	}
	var problems []string
	for _, read := range known(records, Figures, OK) {
		if stored[read.Queue] == nil {
			stored[read.Queue], done[read.Queue] = &count{}, &count{}
		}
		problems = append(problems, outside(read, "stored", read.Stored, stored[read.Queue])...)
		problems = append(problems, outside(read, "done", read.Done, done[read.Queue])...)
	}
	return append(problems, fallen(known(records, Figures, OK))...)
}

func ofKind(records []Record, kind string) []Record {
	var found []Record
	for _, record := range records {
		if record.Kind == kind {
			found = append(found, record)
		}
	}
	return found
}

func outside(read Record, what string, told int, count *count) []string {
	least, most := count.bounds(read.Call, read.Return)
	if told < least || told > most {
		return []string{fmt.Sprintf("%s of %s: %d were told, and there were %d to %d", what, read.Queue, told, least, most)}
	}
	return nil
}

// fallen finds reads that tell less than one which was answered before they were made.
func fallen(reads []Record) []string {
	var problems []string
	slices.SortFunc(reads, func(a, b Record) int { return int(a.Call - b.Call) })
	byReturn := slices.Clone(reads)
	slices.SortFunc(byReturn, func(a, b Record) int { return int(a.Return - b.Return) })
	stored, done := map[string]int{}, map[string]int{}
	for _, read := range reads {
		for byReturn[0].Return < read.Call {
			before := byReturn[0]
			stored[before.Queue] = max(stored[before.Queue], before.Stored)
			done[before.Queue] = max(done[before.Queue], before.Done)
			byReturn = byReturn[1:]
		}
		if read.Stored < stored[read.Queue] || read.Done < done[read.Queue] {
			problems = append(problems, fmt.Sprintf("figures of %s fell to stored %d, done %d",
				read.Queue, read.Stored, read.Done))
		}
	}
	return problems
}

// listsAgree finds a queue whose list at the end is not as long as its figures say, or has a message twice.
func listsAgree(records []Record, _ map[string][]Record) []string {
	var problems []string
	last, listed, seen := map[string]Record{}, map[string]int{}, map[string]bool{}
	for _, record := range records {
		switch record.Kind {
		case Figures:
			if record.Outcome == OK && record.Return >= last[record.Queue].Return {
				last[record.Queue] = record
			}
		case Listed:
			listed[record.Queue]++
			if seen[record.ID] {
				problems = append(problems, fmt.Sprintf("%s is listed twice", record.ID))
			}
			seen[record.ID] = true
		}
	}
	for queue, figures := range last {
		if figures.Stored != listed[queue] {
			problems = append(problems, fmt.Sprintf("%s: %d are counted, and %d are listed",
				queue, figures.Stored, listed[queue]))
		}
	}
	return problems
}

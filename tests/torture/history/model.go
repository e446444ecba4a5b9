package history

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A message as the model knows it. A delivery that no client saw changes nothing here: it can only be seen
// by the receipts that it makes invalid, and each receipt may be refused at any time.
type message struct {
	stored bool
	id     string // empty: not known yet, since only the answer of the send that stored it tells
	holder string // receipt of the latest delivery, until it is settled or refused
	given  string // receipts that gave it back, each with a space before it
	done   bool
	doneBy string // receipt
	result string
}

// model is the whole life of one message: the history of a run is linearizable if that of each message is.
var model = porcupine.Model{
	Init: func() any { return message{} },
	Step: func(before, input, _ any) (bool, any) {
		return step(before.(message), input.(Record))
	},
	DescribeOperation: func(input, _ any) string { return describe(input.(Record)) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// operations returns the calls of one message that may have taken effect. A call of unknown outcome has no
// end: it may take effect at any time after it was made. Of several such calls that would do the same, one at
// most does it, and the first could do it whenever another could: the others are left out.
func operations(records []Record) []porcupine.Operation {
	var found []porcupine.Operation
	open := map[Record]bool{}
	for _, record := range records {
		if record.Outcome == Refused || record.Outcome == Unknown && record.reads() {
			continue
		}
		end := record.Return
		if record.Outcome == Unknown {
			same := Record{Kind: record.Kind, Receipt: record.Receipt, Result: record.Result}
			if open[same] {
				continue
			}
			open[same] = true
			end = math.MaxInt64
		}
		found = append(found, porcupine.Operation{
			ClientId: record.Client, Input: record, Call: record.Call, Return: end,
		})
	}
	return found
}

func (record Record) reads() bool { return record.Kind == Result || record.Kind == Listed }

// step says whether a message can be answered for like this, and what it is afterwards.
func step(now message, record Record) (bool, message) {
	switch record.Kind {
	case Send:
		return stepSend(now, record)
	case Delivery:
		legal := now.stored && !now.done && now.is(record.ID)
		now.id, now.holder = record.ID, record.Receipt
		return legal, now
	case Ack, Nack:
		return stepSettle(now, record)
	case Result, Listed:
		return now.shows(record), now
	}
	panic("no record of a message: " + record.Kind)
}

func (now message) is(id string) bool { return now.id == "" || now.id == id }

func (now message) shows(record Record) bool {
	switch record.State {
	case Done:
		return now.done && now.is(record.ID) && (record.Kind == Listed || now.result == record.Result)
	case Pending:
		return now.stored && !now.done && now.is(record.ID)
	case NotFound:
		return !now.stored
	}
	return false
}

func stepSend(now message, record Record) (bool, message) {
	switch {
	case record.Outcome == Unknown:
		now.stored = true
		return true, now
	case record.Duplicate:
		legal := now.stored && now.is(record.ID)
		now.id = record.ID
		return legal, now
	}
	return !now.stored, message{stored: true, id: record.ID}
}

func stepSettle(now message, record Record) (bool, message) {
	holds := !now.done && now.holder == record.Receipt
	isDone := now.done && now.doneBy == record.Receipt
	switch record.Outcome {
	case OK:
		return holds, now.settled(record)
	case Unknown:
		if holds {
			now = now.settled(record)
		}
		return true, now
	case Already:
		if record.Kind == Ack {
			return isDone, now
		}
		return strings.Contains(now.given, " "+record.Receipt), now
	case Lost:
		if holds {
			now.holder = ""
		}
		return !isDone, now
	}
	return false, now
}

func (now message) settled(record Record) message {
	now.holder = ""
	if record.Kind == Ack {
		now.done, now.doneBy, now.result = true, record.Receipt, record.Result
	} else {
		now.given += " " + record.Receipt
	}
	return now
}

func describe(record Record) string {
	about := record.Kind
	for _, part := range []string{record.ID, record.Receipt, record.State, record.Result} {
		if part != "" {
			about += " " + part
		}
	}
	if record.Duplicate {
		about += " duplicate"
	}
	return about + " -> " + record.Outcome
}

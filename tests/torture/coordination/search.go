package coordination

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// searchMax and stepsMax bound one search for an order of the calls of one group: its time, and its memory.
	searchMax = 30 * time.Second
	stepsMax  = 1_000_000
)

// search is how the model is used for the calls of one group, until it takes too long.
type search struct {
	steps atomic.Int64
	model porcupine.Model
}

func newSearch() *search {
	search := &search{}
	search.model = porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, input, _ any) (bool, any) {
			if search.steps.Load() > stepsMax {
				return false, before
			}
			legal, after := step(before.(state), input.(Record))
			if legal {
				search.steps.Add(1)
			}
			return legal, after
		},
		Equal:             equal,
		DescribeOperation: func(input, _ any) string { return input.(Record).String() },
		DescribeState:     func(now any) string { return now.(state).String() },
	}
	return search
}

// attempt looks for an order of calls, and says until which time they have one.
func attempt(calls []porcupine.Operation) (result porcupine.CheckResult, reached int64) {
	search := newSearch()
	result, found := porcupine.CheckOperationsVerbose(search.model, calls, searchMax)
	if search.steps.Load() > stepsMax {
		result = porcupine.Unknown
	}
	if result == porcupine.Ok {
		return result, math.MaxInt64
	}
	for _, order := range found.PartialLinearizations()[0] {
		reached = max(reached, endOf(calls, order))
	}
	return result, reached
}

// endOf is when the first call ends that is not in the order.
func endOf(calls []porcupine.Operation, order []int) int64 {
	end := int64(math.MaxInt64)
	for at, call := range calls {
		if !slices.Contains(order, at) {
			end = min(end, call.Return)
		}
	}
	return end
}

// verdict says what is wrong with the calls of one group; empty: they have an order.
//
// A call of unknown outcome may never have taken effect. So calls have an order if those have one that were
// answered, with any of the others. It is looked for with as few of them as possible, since each doubles the
// search: at first those whose effect somebody has seen, then each that lets the order reach further. Only
// the search with all of them can say that there is none.
func verdict(calls []porcupine.Operation) string {
	chosen, open := seen(calls)
	result, reached := attempt(chosen)
	for result == porcupine.Illegal {
		candidates := slices.DeleteFunc(slices.Clone(open), func(call porcupine.Operation) bool {
			return call.Call > reached // it comes too late to help
		})
		if len(candidates) == 0 {
			return "its calls have no order"
		}
		at := slices.IndexFunc(candidates, func(call porcupine.Operation) bool {
			with, end := attempt(append(slices.Clone(chosen), call))
			if end <= reached {
				return false
			}
			result, reached = with, end
			return true
		})
		if at < 0 {
			break
		}
		chosen = append(chosen, candidates[at])
		open = slices.DeleteFunc(open, func(call porcupine.Operation) bool { return same(call, candidates[at]) })
	}
	if result != porcupine.Ok {
		result, _ = attempt(calls)
	}
	switch result {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "its calls have no order"
	}
	return "unknown: the search for an order of its calls takes too long"
}

// answered returns those whose outcome is known.
func answered(calls []porcupine.Operation) []porcupine.Operation {
	return slices.DeleteFunc(slices.Clone(calls), func(call porcupine.Operation) bool {
		return call.Input.(Record).Outcome == Unknown
	})
}

func same(a, b porcupine.Operation) bool { return a.Call == b.Call && a.ClientId == b.ClientId }

// seen parts calls into those that were answered or whose effect somebody has seen, of these the first
// request, and the others, the latest one first.
func seen(calls []porcupine.Operation) (chosen, open []porcupine.Operation) {
	names := map[string]bool{}
	for _, call := range calls {
		record := call.Input.(Record)
		names[record.Name] = names[record.Name] || record.Duplicate
		for _, operation := range record.Operations {
			names[operation.By], names[operation.Holder] = true, true
			for _, holder := range operation.Holders {
				names[holder.Owner] = true
			}
		}
	}
	for _, call := range calls {
		record := call.Input.(Record)
		switch {
		case record.Outcome != Unknown:
			chosen = append(chosen, call)
		case names[record.Name]:
			chosen, names[record.Name] = append(chosen, call), false
		default:
			open = append(open, call)
		}
	}
	slices.SortStableFunc(open, func(a, b porcupine.Operation) int { return int(b.Call - a.Call) })
	return chosen, open
}

// calls returns the calls of one group that may have taken effect. One of unknown outcome has no end: it may
// take effect at any time after it was made. Releases and transactions that are done once take effect once,
// and the first of several such calls could do it whenever another could: the others are left out.
func calls(records []Record, jumps []Record) []porcupine.Operation {
	requests := map[string]int{}
	for _, record := range records {
		requests[record.Name]++
	}
	open := map[string]bool{}
	var found []porcupine.Operation
	for _, record := range records {
		if record.Outcome == Refused {
			continue
		}
		record.remembered = record.Transaction && record.Repeatable && requests[record.Name] > 1
		if record.Outcome == Unknown {
			once := record.remembered || record.Operations[0].Kind == Release
			if record.Operations[0].reads() || once && open[record.Name] {
				continue
			}
			open[record.Name] = true
			record.Return = math.MaxInt64
		}
		record.jumps = jumps
		found = append(found, porcupine.Operation{
			ClientId: record.Client, Input: record, Call: record.Call, Return: record.Return,
		})
	}
	return found
}

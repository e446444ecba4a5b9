package coordination

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// problemsMax is the most problems of one kind that are told.
const problemsMax = 5

// Problems tells what a history must not have; none: it is as it should be.
func Problems(records []Record) []string {
	problems := notLinearizable(records)
	for _, check := range []func([]Record) []string{
		numbersGrow, holdersApart, grantsEnd, balancesAgree, unexpected,
	} {
		found := check(records)
		if more := len(found) - problemsMax; more > 0 {
			found = append(found[:problemsMax], fmt.Sprintf("... and %d more like these", more))
		}
		problems = append(problems, found...)
	}
	if !slices.ContainsFunc(records, func(record Record) bool { return record.Kind == End }) {
		problems = append(problems, "the history has no end: nobody can say whether anything is lost")
	}
	return problems
}

// byGroup returns the calls of each group.
func byGroup(records []Record) map[string][]Record {
	groups := map[string][]Record{}
	for _, record := range records {
		if record.Kind == Called {
			groups[record.Group] = append(groups[record.Group], record)
		}
	}
	return groups
}

func jumpsOf(records []Record) []Record {
	return slices.DeleteFunc(slices.Clone(records), func(record Record) bool {
		return record.Kind != Fault || record.Code != Jump
	})
}

// WithoutOrder returns the groups whose calls, in whatever order, cannot have been answered like this, or of
// which this cannot be said, with what is wrong.
func WithoutOrder(records []Record) map[string]string {
	jumps, wrong := jumpsOf(records), map[string]string{}
	for group, records := range byGroup(records) {
		if verdict := verdict(calls(records, jumps)); verdict != "" {
			wrong[group] = verdict
		}
	}
	return wrong
}

func notLinearizable(records []Record) []string {
	wrong := WithoutOrder(records)
	var problems []string
	for _, group := range slices.Sorted(maps.Keys(wrong)) {
		problems = append(problems, fmt.Sprintf("group %s: %s", group, wrong[group]))
	}
	return problems
}

// Draw writes a page that shows the calls of one group, and how far an order of them was found.
func Draw(records []Record, group, path string) error {
	search := newSearch()
	calls := calls(byGroup(records)[group], jumpsOf(records))
	_, found := porcupine.CheckOperationsVerbose(search.model, calls, searchMax)
	search.steps.Store(0) // the page takes the same steps again
	return porcupine.VisualizePath(search.model, found, path)
}

// Groups is the number of groups with calls.
func Groups(records []Record) int { return len(byGroup(records)) }

// balancesAgree finds sums that differ, although each transfer moves as much as it takes.
func balancesAgree(records []Record) []string {
	var problems []string
	first := map[string]Record{}
	for _, record := range records {
		if record.Kind != Balance {
			continue
		}
		before, known := first[record.Group]
		if !known {
			first[record.Group] = record
		} else if before.Sum != record.Sum {
			problems = append(problems, fmt.Sprintf("group %s: a holder of both locks has read the sum %d (%s), "+
				"another one %d (%s)", record.Group, before.Sum, before.Name, record.Sum, record.Name))
		}
	}
	return problems
}

// unexpected finds answers that no call of a run should get.
func unexpected(records []Record) []string {
	var problems []string
	for _, record := range records {
		if strings.HasPrefix(record.Code, "unexpected") {
			problems = append(problems, fmt.Sprintf("%s of group %s: %s", record.Name, record.Group, record.Code))
		}
	}
	return problems
}

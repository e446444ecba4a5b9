package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.torture/coordination"
	"sluice.torture/jsonl"
)

// historyLength is how long faults happen in each of many short histories.
const historyLength = 3 * time.Second

// tally is what many histories have had.
type tally struct {
	accepted, calls, groups int
	counts                  map[string]int // records of each kind and outcome
	planted                 map[string]int // faults that were found
}

// histories lets clients work with locks, documents and transactions on the same servers again and again,
// each time on keys of its own, and checks each history; the problems of the first that is not accepted.
func (run *run) histories(folder string, count int, faults []fault, spoil spoil) []string {
	all := tally{counts: map[string]int{}, planted: map[string]int{}}
	defer func(begun time.Time) { all.report(count, time.Since(begun)) }(time.Now())
	seed := run.seed
	for number := range count {
		run.seed = seed + int64(number)*1000
		within := filepath.Join(folder, fmt.Sprintf("history-%03d", number+1))
		load := &coordinating{prefix: fmt.Sprintf("h%d", number+1), spoil: spoil}
		records, problems := run.history(within, load, faults)
		for name, told := range run.recorder.counts {
			all.counts[name] += told
		}
		if len(problems) == 0 {
			problems = all.add(records)
		}
		if len(problems) > 0 {
			return append(problems, fmt.Sprintf("not accepted: %s, after %d that were", within, number))
		}
		if err := os.RemoveAll(within); err != nil {
			return []string{err.Error()}
		}
	}
	return nil
}

// add counts a history that is accepted, and plants faults into copies of it; those that are not found.
func (all *tally) add(records []coordination.Record) []string {
	all.accepted++
	all.calls += len(records)
	all.groups += coordination.Groups(records)
	var problems []string
	for name, isFound := range coordination.Found(records) {
		all.planted[name]++
		if !isFound {
			problems = append(problems, "not found by the checks, although it was planted: "+name)
		}
	}
	return problems
}

func (all *tally) report(count int, length time.Duration) {
	fmt.Printf("calls:%s\n", counts(all.counts))
	fmt.Printf("planted faults, all of which were found in so many histories:%s\n", counts(all.planted))
	fmt.Printf("%d of %d histories accepted, with %d records in %d groups, in %.0f s\n",
		all.accepted, count, all.calls, all.groups, length.Seconds())
}

// history makes one in a folder, and checks it.
func (run *run) history(
	folder string, load *coordinating, faults []fault,
) ([]coordination.Record, []string) {
	if err := empty(folder); err != nil {
		return nil, []string{err.Error()}
	}
	recorder, err := newRecorder(folder, false)
	if err != nil {
		return nil, []string{err.Error()}
	}
	run.recorder = recorder
	var problems []string
	if err := run.coordinate(load, faults); err != nil {
		problems = append(problems, err.Error())
	}
	if err := recorder.close(); err != nil {
		problems = append(problems, err.Error())
	}
	records, found := checkCoordination(folder)
	return records, append(problems, found...)
}

// coordinate lets clients work while faults happen, and reads what there is in the end.
func (run *run) coordinate(load *coordinating, faults []fault) error {
	run.proofs = []string{aWrite}
	working := run.crowd(1, coordinators, load.act)
	err := run.strike(faults)
	load.over.Store(true)
	working.end()
	if err != nil {
		return err
	}
	observer := run.client(0)
	defer observer.http.CloseIdleConnections()
	return load.finish(observer)
}

// checkCoordination reads the history of locks, documents and transactions in a folder, and draws the groups
// whose calls have no order; the records and the problems.
func checkCoordination(folder string) ([]coordination.Record, []string) {
	records, err := jsonl.Read[coordination.Record](filepath.Join(folder, coordinationFile))
	if err != nil {
		return nil, []string{err.Error()}
	}
	problems := coordination.Problems(records)
	if len(problems) == 0 {
		return records, nil
	}
	for group := range coordination.WithoutOrder(records) {
		page := filepath.Join(folder, group+".html")
		if err := coordination.Draw(records, group, page); err != nil {
			problems = append(problems, err.Error())
		}
		fmt.Println("drawn:", page)
	}
	return records, problems
}

// checkKeys checks the history of locks, documents and transactions in a folder, and plants faults into
// copies of it; the problems.
func checkKeys(folder string) []string {
	since := time.Now()
	records, problems := checkCoordination(folder)
	if len(problems) > 0 {
		return problems
	}
	all := tally{planted: map[string]int{}}
	problems = all.add(records)
	fmt.Printf("checked in %.1f s: %d records of locks and documents are as they should be, in %d groups of "+
		"keys, and %d planted faults were found\n",
		time.Since(since).Seconds(), len(records), all.groups, len(all.planted)-len(problems))
	return problems
}

// quick are the faults of short histories: servers that die, freeze and lead no more. No clock is wrong, so
// that no start makes the time jump.
func quick(nodes int) []fault {
	faults := append([]fault{none}, ofProcess...)
	if nodes > 1 {
		faults = append(append(faults, ofLeader...), ofCluster...)
	}
	faults = slices.Clone(faults)
	for at := range faults {
		faults[at].jumps = 0
	}
	return faults
}

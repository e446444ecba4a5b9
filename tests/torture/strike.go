package main

import (
	"fmt"
	"math/rand"
	"slices"
	"time"

	"sluice.torture/history"
)

// calmMax bounds the time from the end of a fault until calls succeed.
const calmMax = 10 * time.Second

// strike makes one fault after another until the time is over, each once before any comes again, and first of
// all one that changes members if there is any. All servers run in the end, and can be reached.
func (run *run) strike(faults []fault) error {
	random := rand.New(rand.NewSource(run.seed))
	storms := ofClients
	if len(run.nodes) > 1 {
		storms = append(slices.Clone(storms), ofPeers...)
	}
	var order []int
	for time.Since(run.recorder.begin) < run.length {
		if len(order) == 0 {
			order = random.Perm(len(faults))
			changes := func(number int) bool { return faults[number].members }
			first := max(0, slices.IndexFunc(order, changes))
			order[0], order[first] = order[first], order[0]
		}
		fault, storm := faults[order[0]], storms[random.Intn(len(storms))]
		order = order[1:]
		shuffled := slices.Clone(run.nodes)
		random.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
		node, others := shuffled[0], shuffled[1:]
		if fault.members {
			if err := run.whole(); err != nil {
				return fmt.Errorf("before %s: %w", fault.name, err)
			}
		}
		record := history.Record{Kind: history.Fault, Call: run.recorder.now()}
		record.Note = fmt.Sprintf("%s: %s, %s", node.name, fault.name, storm.name)
		storm.blow(run.network, random, node.index)
		err := fault.run(random, node, others)
		run.network.calm()
		record.Return = run.recorder.now()
		if len(run.nodes) <= fault.jumps {
			record.Code = history.Jump
		}
		run.recorder.add(record)
		run.struck[fault.name]++
		run.struck[storm.name]++
		if err == nil {
			err = run.calm(random)
		}
		if err == nil && fault.members {
			err = run.whole()
		}
		if err != nil {
			return fmt.Errorf("%s, at %.3f s: %w", record.Note, float64(record.Call)/1e9, err)
		}
	}
	return nil
}

// calm waits until calls succeed that were made after the fault, and a little longer.
func (run *run) calm(random *rand.Rand) error {
	for since := run.recorder.now(); !run.recorder.proves(run.proofs, since); time.Sleep(time.Millisecond) {
		waited := time.Duration(run.recorder.now() - since)
		run.longest = max(run.longest, waited)
		if waited > calmMax {
			return fmt.Errorf("not one of each of %q succeeds within %v after it", run.proofs, calmMax)
		}
	}
	time.Sleep(during(random, time.Second))
	for _, node := range run.nodes {
		if err := node.check(); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"fmt"
	"math/rand"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"sluice.torture/history"
)

const (
	// calmMax bounds the time from the end of a fault until a send succeeds.
	calmMax = 10 * time.Second
	// failsWithin bounds the time from a sync that fails until the server has ended.
	failsWithin = 15 * time.Second
)

// fault is done to one node, and is over when `run` returns.
type fault struct {
	name string
	run  func(*rand.Rand, *node) error
}

// during returns a time from a tenth of the most to the most.
func during(random *rand.Rand, most time.Duration) time.Duration {
	return most/10 + time.Duration(random.Int63n(int64(most-most/10)))
}

// ofProcess are the faults that need nothing of the machine.
var ofProcess = []fault{
	{"kill -9", func(random *rand.Rand, node *node) error {
		node.kill()
		time.Sleep(during(random, time.Second))
		return node.start()
	}},
	{"kill -9 twice", func(random *rand.Rand, node *node) error {
		node.kill()
		if err := node.start(); err != nil {
			return err
		}
		time.Sleep(during(random, 100*time.Millisecond))
		node.kill()
		return node.start()
	}},
	{"restart", func(_ *rand.Rand, node *node) error {
		if err := node.stop(); err != nil {
			return err
		}
		return node.start()
	}},
	{"freeze", func(random *rand.Rand, node *node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, 3*time.Second))
		return node.signal(syscall.SIGCONT)
	}},
	{"kill -9 while frozen", func(random *rand.Rand, node *node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, time.Second))
		node.kill()
		return node.start()
	}},
}

// ofFullDisk need a disk for each node.
var ofFullDisk = []fault{
	{"full disk", func(random *rand.Rand, node *node) error {
		if err := node.disk.fill(); err != nil {
			return err
		}
		time.Sleep(during(random, 3*time.Second))
		return node.disk.free()
	}},
	{"kill -9 on a full disk", func(random *rand.Rand, node *node) error {
		if err := node.disk.fill(); err != nil {
			return err
		}
		time.Sleep(during(random, time.Second))
		node.kill()
		started := node.start()
		if err := node.disk.free(); err != nil || started == nil {
			return err
		}
		if node.process.ProcessState.ExitCode() != full {
			return started
		}
		return node.start() // the ballast has taken what the server gave up, and a start has to say so
	}},
}

// ofBadDisk need strace.
var ofBadDisk = []fault{
	{"failing disk", func(_ *rand.Rand, node *node) error {
		tracer, err := inject(node.process.Process.Pid, "fdatasync:error=EIO")
		if err != nil {
			return err
		}
		defer tracer.end()
		if err := node.ends(failed, failsWithin); err != nil {
			return err
		}
		return node.start()
	}},
	{"hanging disk", func(random *rand.Rand, node *node) error {
		hang := during(random, 2*time.Second)
		fault := fmt.Sprintf("fdatasync:delay_enter=%d", hang.Microseconds())
		tracer, err := inject(node.process.Process.Pid, fault)
		if err != nil {
			return err
		}
		time.Sleep(2 * hang)
		tracer.end()
		return nil
	}},
}

// clockJumps is the fault in which the time of a server may jump: a start follows the wall clock.
const clockJumps = "clock that jumps, and kill -9"

// anyShift is a shift of a clock, forwards or back.
func anyShift(random *rand.Rand) time.Duration {
	return time.Duration(random.Int63n(int64(2*shiftMax))) - shiftMax
}

// ofClock need libfaketime.
var ofClock = []fault{
	{"clock that jumps and comes back", func(random *rand.Rand, node *node) error {
		before := node.clock.shifted
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		time.Sleep(shiftSeen)
		return node.clock.shift(before)
	}},
	{clockJumps, func(random *rand.Rand, node *node) error {
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		node.kill()
		return node.start()
	}},
}

// none is for a storm alone.
var none = fault{"", func(random *rand.Rand, _ *node) error {
	time.Sleep(during(random, 2*time.Second))
	return nil
}}

// possible returns the faults that can be made here, and says which cannot.
func possible(mounts bool) (faults []fault, leftOut []string) {
	faults = append([]fault{none, none}, ofProcess...)
	if mounts {
		faults = append(faults, ofFullDisk...)
	} else {
		leftOut = append(leftOut, "full disks (there is no namespace of mounts)")
	}
	if _, err := exec.LookPath("strace"); err == nil {
		faults = append(faults, ofBadDisk...)
	} else {
		leftOut = append(leftOut, "failing and hanging disks (strace is not installed)")
	}
	if faketime() != "" {
		faults = append(faults, ofClock...)
	} else {
		leftOut = append(leftOut, "wrong clocks (libfaketime is not installed)")
	}
	return faults, leftOut
}

// strike makes one fault after another until the time is over, each once before any comes again. All servers
// run in the end, and can be reached.
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
		}
		fault, storm := faults[order[0]], storms[random.Intn(len(storms))]
		order = order[1:]
		node := run.nodes[random.Intn(len(run.nodes))]
		record := history.Record{Kind: history.Fault, Call: run.recorder.now()}
		record.Note = fmt.Sprintf("%s: %s, %s", node.name, fault.name, storm.name)
		storm.blow(run.network, random, node.index)
		err := fault.run(random, node)
		run.network.calm()
		record.Return = run.recorder.now()
		if fault.name == clockJumps {
			record.Code = history.Jump
		}
		run.recorder.add(record)
		run.struck[fault.name]++
		run.struck[storm.name]++
		if err == nil {
			err = run.calm(random)
		}
		if err != nil {
			return fmt.Errorf("%s, at %.3f s: %w", record.Note, float64(record.Call)/1e9, err)
		}
	}
	return nil
}

// calm waits until a send succeeds that was called after the fault, and a little longer.
func (run *run) calm(random *rand.Rand) error {
	for since := run.recorder.now(); !run.recorder.hasSentSince(since); time.Sleep(time.Millisecond) {
		waited := time.Duration(run.recorder.now() - since)
		run.longest = max(run.longest, waited)
		if waited > calmMax {
			return fmt.Errorf("no send succeeds within %v after it", calmMax)
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

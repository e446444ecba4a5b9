package main

import (
	"fmt"
	"math/rand"
	"os/exec"
	"syscall"
	"time"
)

// failsWithin bounds the time from a sync that fails until the server has ended.
const failsWithin = 15 * time.Second

// fault is done to a node, or to it and others, and is over when `run` returns.
type fault struct {
	name string
	// jumps is the most nodes of a cluster whose time may jump forwards by it, as a start follows wall clocks.
	jumps int
	run   func(random *rand.Rand, node *node, others []*node) error
}

// during returns a time from a tenth of the most to the most.
func during(random *rand.Rand, most time.Duration) time.Duration {
	return most/10 + time.Duration(random.Int63n(int64(most-most/10)))
}

// ofProcess are the faults that need nothing of the machine.
var ofProcess = []fault{
	{"kill -9", 0, func(random *rand.Rand, node *node, _ []*node) error {
		node.kill()
		time.Sleep(during(random, time.Second))
		return node.start()
	}},
	{"kill -9 twice", 0, func(random *rand.Rand, node *node, _ []*node) error {
		node.kill()
		if err := node.start(); err != nil {
			return err
		}
		time.Sleep(during(random, 100*time.Millisecond))
		node.kill()
		return node.start()
	}},
	{"restart", 0, func(_ *rand.Rand, node *node, _ []*node) error {
		if err := node.stop(); err != nil {
			return err
		}
		return node.start()
	}},
	{"freeze", 0, func(random *rand.Rand, node *node, _ []*node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, 3*time.Second))
		return node.signal(syscall.SIGCONT)
	}},
	{"kill -9 while frozen", 0, func(random *rand.Rand, node *node, _ []*node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, time.Second))
		node.kill()
		return node.start()
	}},
}

// ofFullDisk need a disk for each node.
var ofFullDisk = []fault{
	{"full disk", 0, func(random *rand.Rand, node *node, _ []*node) error {
		if err := node.disk.fill(); err != nil {
			return err
		}
		time.Sleep(during(random, 3*time.Second))
		return node.disk.free()
	}},
	{"kill -9 on a full disk", 0, func(random *rand.Rand, node *node, _ []*node) error {
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
	{"failing disk", 0, func(_ *rand.Rand, node *node, _ []*node) error {
		tracer, err := inject(node.process.Process.Pid, "fdatasync:error=EIO")
		if err != nil {
			return err
		}
		defer tracer.end()
		if node.ends(failed, 2*time.Second) != nil {
			node.network.calm() // a node to which nobody sends anything writes nothing
		}
		if err := node.ends(failed, failsWithin); err != nil {
			return err
		}
		return node.start()
	}},
	{"hanging disk", 0, func(random *rand.Rand, node *node, _ []*node) error {
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

// anyShift is a shift of a clock, forwards or back.
func anyShift(random *rand.Rand) time.Duration {
	return time.Duration(random.Int63n(int64(2*shiftMax))) - shiftMax
}

// ofClock need libfaketime.
var ofClock = []fault{
	{"clock that jumps and comes back", 0, func(random *rand.Rand, node *node, _ []*node) error {
		before := node.clock.shifted
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		time.Sleep(shiftSeen)
		return node.clock.shift(before)
	}},
	{"clock that jumps, and kill -9", 1, func(random *rand.Rand, node *node, _ []*node) error {
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		node.kill()
		return node.start()
	}},
}

// ofCluster need several nodes.
var ofCluster = []fault{
	{"kill -9 of all nodes but one", 0, func(random *rand.Rand, node *node, others []*node) error {
		return killAll(random, others)
	}},
	{"kill -9 of all nodes", nodesMax, func(random *rand.Rand, node *node, others []*node) error {
		return killAll(random, append(others, node))
	}},
	{"kill -9 of one node, freeze of another", 0, func(random *rand.Rand, node *node, others []*node) error {
		others[0].signal(syscall.SIGSTOP)
		defer others[0].signal(syscall.SIGCONT)
		node.kill()
		time.Sleep(during(random, 2*time.Second))
		return node.start()
	}},
	{"restart of one node after the other", 0, func(_ *rand.Rand, node *node, others []*node) error {
		for _, node := range append(others, node) {
			if err := node.stop(); err != nil {
				return err
			}
			if err := node.start(); err != nil {
				return err
			}
		}
		return nil
	}},
}

// killAll kills nodes at once, and starts them again after a while.
func killAll(random *rand.Rand, nodes []*node) error {
	for _, node := range nodes {
		node.kill()
	}
	time.Sleep(during(random, time.Second))
	for _, node := range nodes {
		if err := node.start(); err != nil {
			return err
		}
	}
	return nil
}

// none is for a storm alone.
var none = fault{"", 0, func(random *rand.Rand, _ *node, _ []*node) error {
	time.Sleep(during(random, 2*time.Second))
	return nil
}}

// possible returns the faults that can be made here, and says which cannot.
func possible(nodes int, mounts bool) (faults []fault, leftOut []string) {
	faults = append([]fault{none, none}, ofProcess...)
	if nodes > 1 {
		faults = append(faults, ofCluster...)
	}
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

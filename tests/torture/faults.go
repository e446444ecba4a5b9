package main

import (
	"errors"
	"fmt"
	"math/rand"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// endsWithin bounds the time from a sync that fails, or a removal, until the server has ended.
const endsWithin = 15 * time.Second

// fault is done to a node, or to it and others, and is over when `run` returns.
type fault struct {
	name string
	// jumps is the most nodes of a cluster whose time may jump forwards by it, as a start follows wall clocks.
	jumps int
	// members says that it changes who is of the cluster, which is whole before and has to be so afterwards.
	members bool
	run     func(random *rand.Rand, node *node, others []*node) error
}

// during returns a time from a tenth of the most to the most.
func during(random *rand.Rand, most time.Duration) time.Duration {
	return most/10 + time.Duration(random.Int63n(int64(most-most/10)))
}

// ofProcess are the faults that need nothing of the machine.
var ofProcess = []fault{
	{name: "kill -9", run: func(random *rand.Rand, node *node, _ []*node) error {
		node.kill()
		time.Sleep(during(random, time.Second))
		return node.start()
	}},
	{name: "kill -9 twice", run: func(random *rand.Rand, node *node, _ []*node) error {
		node.kill()
		if err := node.start(); err != nil {
			return err
		}
		time.Sleep(during(random, 100*time.Millisecond))
		node.kill()
		return node.start()
	}},
	{name: "restart", run: func(_ *rand.Rand, node *node, _ []*node) error {
		if err := node.stop(); err != nil {
			return err
		}
		return node.start()
	}},
	{name: "freeze", run: func(random *rand.Rand, node *node, _ []*node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, 3*time.Second))
		return node.signal(syscall.SIGCONT)
	}},
	{name: "kill -9 while frozen", run: func(random *rand.Rand, node *node, _ []*node) error {
		node.signal(syscall.SIGSTOP)
		time.Sleep(during(random, time.Second))
		node.kill()
		return node.start()
	}},
}

// ofFullDisk need a disk for each node.
var ofFullDisk = []fault{
	{name: "full disk", run: func(random *rand.Rand, node *node, _ []*node) error {
		if err := node.disk.fill(); err != nil {
			return err
		}
		time.Sleep(during(random, 3*time.Second))
		return node.disk.free()
	}},
	{name: "kill -9 on a full disk", run: func(random *rand.Rand, node *node, _ []*node) error {
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
	{name: "failing disk", run: func(_ *rand.Rand, node *node, _ []*node) error {
		tracer, err := inject(node.process.Process.Pid, "fdatasync:error=EIO")
		if err != nil {
			return err
		}
		defer tracer.end()
		if node.ends(failed, 2*time.Second) != nil {
			node.network.calm() // a node to which nobody sends anything writes nothing
		}
		if err := node.ends(failed, endsWithin); err != nil {
			return err
		}
		return node.start()
	}},
	{name: "hanging disk", run: func(random *rand.Rand, node *node, _ []*node) error {
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
	{name: "clock that jumps and comes back", run: func(random *rand.Rand, node *node, _ []*node) error {
		before := node.clock.shifted
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		time.Sleep(shiftSeen)
		if err := node.clock.shift(before); err != nil {
			return err
		}
		time.Sleep(shiftSeen) // a machine that joins meanwhile would find a wrong clock
		return nil
	}},
	{name: "clock that jumps, and kill -9", jumps: 1, run: func(random *rand.Rand, node *node, _ []*node) error {
		if err := node.clock.shift(anyShift(random)); err != nil {
			return err
		}
		node.kill()
		return node.start()
	}},
}

// ofCluster need several nodes.
var ofCluster = []fault{
	{name: "kill -9 of all nodes but one", run: func(random *rand.Rand, node *node, others []*node) error {
		return killAll(random, others)
	}},
	{name: "kill -9 of all nodes", jumps: nodesMax, run: func(random *rand.Rand, node *node, others []*node) error {
		return killAll(random, append(others, node))
	}},
	{name: "kill -9 of one node, freeze of another", run: func(random *rand.Rand, node *node, others []*node) error {
		others[0].signal(syscall.SIGSTOP)
		defer others[0].signal(syscall.SIGCONT)
		node.kill()
		time.Sleep(during(random, 2*time.Second))
		return node.start()
	}},
	{name: "restart of one node after the other", run: func(_ *rand.Rand, node *node, others []*node) error {
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
	{name: "transfer of the leadership", run: func(_ *rand.Rand, node *node, others []*node) error {
		number, err := node.number()
		if err != nil {
			return err
		}
		err = node.cluster.ask(others, new(any), "transfer", fmt.Sprint(number))
		var failure *exec.ExitError
		isUnreached := errors.As(err, &failure) && failure.ExitCode() == unavailable
		if isUnreached || err != nil && strings.Contains(err.Error(), "not_transferred") {
			return nil // it is cut off, or behind
		}
		return err
	}},
}

// ofLeader need several nodes, of which one leads.
var ofLeader = []fault{
	{name: "kill -9 of the leader", run: func(random *rand.Rand, node *node, others []*node) error {
		leader, err := node.cluster.leader(append(others, node))
		if err != nil {
			return err
		}
		leader.kill()
		time.Sleep(during(random, time.Second))
		return leader.start()
	}},
	{name: "freeze of the leader", run: func(random *rand.Rand, node *node, others []*node) error {
		leader, err := node.cluster.leader(append(others, node))
		if err != nil {
			return err
		}
		leader.signal(syscall.SIGSTOP)
		time.Sleep(during(random, 3*time.Second))
		return leader.signal(syscall.SIGCONT)
	}},
}

// ofMembers change the nodes of a cluster. Another machine comes to the address of the one that goes, so that
// the proxies stay what they are.
var ofMembers = []fault{
	{name: "removal of a node, and another one that joins", members: true,
		run: func(_ *rand.Rand, node *node, others []*node) error {
			number, err := node.number()
			if err != nil {
				return err
			}
			if err := node.cluster.insist(others, new(any), "remove", fmt.Sprint(number), "--yes"); err != nil {
				return err
			}
			if node.ends(removed, 2*time.Second) != nil {
				node.network.calm() // a node that is cut off does not learn of it
			}
			if err := node.ends(removed, endsWithin); err != nil {
				return err
			}
			return anew(node, others, "add")
		}},
	{name: "loss of a node with its disk, and one that replaces it", members: true,
		run: func(random *rand.Rand, node *node, others []*node) error {
			number, err := node.number()
			if err != nil {
				return err
			}
			node.kill()
			time.Sleep(during(random, time.Second))
			return anew(node, others, "replace", fmt.Sprint(number))
		}},
}

// anew lets a machine without data, and with the right time, join in the place of a node, with the token that
// others give for these arguments.
func anew(node *node, others []*node, arguments ...string) error {
	shifted := false
	for _, node := range append(others, node) {
		shifted = shifted || node.clock.shifted != 0
		if err := node.clock.shift(0); err != nil {
			return err
		}
	}
	if shifted {
		time.Sleep(shiftSeen)
	}
	if err := node.disk.wipe(); err != nil {
		return err
	}
	return node.cluster.join(node, others, arguments...)
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
var none = fault{name: "", run: func(random *rand.Rand, _ *node, _ []*node) error {
	time.Sleep(during(random, 2*time.Second))
	return nil
}}

// possible returns the faults that can be made here, and says which cannot.
func possible(nodes int, mounts bool) (faults []fault, leftOut []string) {
	faults = append([]fault{none, none}, ofProcess...)
	if nodes > 1 {
		faults = append(append(faults, ofCluster...), ofMembers...)
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

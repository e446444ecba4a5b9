package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice.torture/history"
)

// drainWithin bounds the time from the last fault until every message is settled.
const drainWithin = 60 * time.Second

// run is what happens to some nodes and their clients, until the history is complete.
type run struct {
	seed     int64
	length   time.Duration
	nodes    []*node
	network  *network
	cluster  *cluster // nil: there is one node, in clear text
	recorder *recorder
	struck   map[string]int // faults, by name
	longest  time.Duration  // from the end of a fault until calls succeeded
	proofs   []string       // calls that have to succeed after each fault
}

// newRun starts the nodes. Everything that it leaves behind is in the folder.
func newRun(program, folder string, seed int64, nodes int, length time.Duration, mounts bool) (*run, error) {
	recorder, err := newRecorder(folder, true)
	if err != nil {
		return nil, err
	}
	network, err := newNetwork(nodes)
	if err != nil {
		return nil, err
	}
	run := &run{seed: seed, length: length, network: network, recorder: recorder, struck: map[string]int{}}
	if nodes > 1 {
		run.cluster = &cluster{program: program, folder: folder, network: network}
	}
	for index := range nodes {
		node, err := newNode(index, program, folder, network, run.cluster, mounts)
		if err != nil {
			return nil, err
		}
		run.nodes = append(run.nodes, node)
	}
	if run.cluster != nil {
		return run, run.cluster.found(run.nodes)
	}
	return run, run.nodes[0].start()
}

// client is one with random numbers of its own.
func (run *run) client(number int) *client {
	var secrets *tls.Config
	if run.cluster != nil {
		secrets = run.cluster.clients
	}
	var servers []string
	for _, node := range run.nodes {
		servers = append(servers, node.url())
	}
	return newClient(number, run.seed+int64(number), servers, secrets, run.recorder)
}

// torture lets clients work while faults happen, then lets them finish, and lists what there is.
func (run *run) torture(faults []fault) error {
	observer := run.client(0)
	for number := range queues {
		settings := map[string]any{
			"max_attempts": 10_000, "max_deliveries": 65_535, "backoff": map[string]any{"kind": "none"},
		}
		if _, err := observer.insist("PUT", "/v1/queues/"+queueName(number), settings); err != nil {
			return err
		}
	}
	load := &workload{}
	sending := run.crowd(1, senders, load.send)
	working := run.crowd(1+senders, workers, load.work)
	reading := run.crowd(1+senders+workers, readers, load.ask)
	keys := &coordinating{prefix: "r", pause: leisure}
	coordinating := run.crowd(1+senders+workers+readers, coordinators, keys.act)
	run.proofs = []string{aSend, aWrite}
	err := run.strike(faults)
	if err == nil {
		err = run.whole()
	}
	load.over.Store(err != nil)
	sending.end()
	keys.over.Store(true)
	coordinating.end()
	if err == nil {
		err = keys.finish(observer)
	}
	if err == nil {
		err = run.drain(observer)
	}
	load.over.Store(err != nil)
	working.end()
	reading.end()
	for number := 0; number < queues && err == nil; number++ {
		err = list(observer, queueName(number))
	}
	if err == nil {
		run.recorder.add(history.Record{Kind: history.End, Call: run.recorder.now(), Return: run.recorder.now()})
	}
	if closing := run.recorder.close(); err == nil {
		err = closing
	}
	return err
}

// whole waits until a cluster is as it was founded, but for the numbers of its nodes.
func (run *run) whole() error {
	if run.cluster == nil {
		return nil
	}
	return run.cluster.whole(run.nodes)
}

// drain waits until the workers have settled all there is.
func (run *run) drain(observer *client) error {
	for since := time.Now(); time.Since(since) < drainWithin; time.Sleep(100 * time.Millisecond) {
		open := 0
		for number := range queues {
			told := figures(observer, queueName(number))
			if told.Outcome != history.OK {
				open++
			}
			open += told.Stored - told.Done
		}
		if open == 0 {
			return nil
		}
	}
	return fmt.Errorf("messages are open %v after the last fault", drainWithin)
}

// stop ends the servers: well, or at once after a failure, when their data is kept.
func (run *run) stop(kept string) error {
	for _, node := range run.nodes {
		if kept == "" {
			if err := node.stop(); err != nil {
				return err
			}
			continue
		}
		node.kill()
		target := filepath.Join(kept, node.name)
		if err := os.CopyFS(target, os.DirFS(node.disk.path)); err != nil {
			return err
		}
	}
	return nil
}

// crowd is some clients that do the same again and again.
type crowd struct {
	stop chan struct{}
	all  sync.WaitGroup
}

// crowd lets clients with these numbers do it, each with the number of the time that it does.
func (run *run) crowd(first, clients int, do func(*client, int)) *crowd {
	crowd := &crowd{stop: make(chan struct{})}
	for number := first; number < first+clients; number++ {
		client := run.client(number)
		crowd.all.Add(1)
		go func() {
			defer crowd.all.Done()
			defer client.http.CloseIdleConnections()
			for times := 0; ; times++ {
				select {
				case <-crowd.stop:
					return
				default:
					do(client, times)
					client.pause(between)
				}
			}
		}()
	}
	return crowd
}

// end waits until each client has done what it does.
func (crowd *crowd) end() {
	close(crowd.stop)
	crowd.all.Wait()
}

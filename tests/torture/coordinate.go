package main

import (
	"fmt"
	"math/rand"
	"sync/atomic"
	"time"

	"sluice.torture/coordination"
)

const (
	coordinators = 16
	// groups of keys: in the first ones anything is done to documents and locks, in the others holders of both
	// locks move amounts from one document to the other.
	anyGroups, transferGroups = 5, 2
	// repeatsMax is the most requests of one call.
	repeatsMax = 8
	// beginning is the sum of both documents in the groups of transfers.
	beginning = 200
	// stay is how long clients work with the same groups, so that the history of each is short.
	stay = 4 * time.Second
	// leisure is the mean pause between two things that a client does beside those who send and receive.
	leisure = 40 * time.Millisecond
)

// coordinating is the work of some clients with locks, documents and transactions, on keys of its own.
type coordinating struct {
	prefix string        // of all groups
	pause  time.Duration // mean of that between two things
	spoil  spoil         // nil: calls are what the history tells
	over   atomic.Bool   // nobody repeats any more
	names  atomic.Int64
	stays  atomic.Int64 // how often clients have gone to new groups
}

func (load *coordinating) group(stay int64, number int) string {
	return fmt.Sprintf("%s-%d-g%d", load.prefix, stay, number)
}

// worker is one client in one group, for a moment.
type worker struct {
	*client
	load  *coordinating
	group string
}

// act does one thing in some group.
func (load *coordinating) act(client *client, _ int) {
	client.pause(load.pause)
	number, stays := client.random.Intn(anyGroups+transferGroups), client.recorder.now()/stay.Nanoseconds()
	load.stays.Store(stays)
	worker := worker{client, load, load.group(stays, number)}
	if number >= anyGroups {
		worker.transfer()
		return
	}
	actions[client.random.Intn(len(actions))](worker)
}

// call is a new one, with a name of its own.
func (worker worker) call(operations ...coordination.Operation) coordination.Record {
	return coordination.Record{
		Group: worker.group, Name: fmt.Sprintf("n%d", worker.load.names.Add(1)), Operations: operations,
	}
}

// make makes a call.
func (worker worker) make(call coordination.Record) coordination.Record {
	return coordinate(worker.client, call, worker.load.spoil)
}

// do makes a call once.
func (worker worker) do(operations ...coordination.Operation) coordination.Record {
	return worker.make(worker.call(operations...))
}

// insist makes a call that the server knows again, until its outcome is known.
func (worker worker) insist(call coordination.Record) coordination.Record {
	kind := call.Operations[0].Kind
	call.Repeatable = kind != coordination.Release && kind != coordination.Delete || call.Transaction
	told := worker.make(call)
	for repeats := 1; repeats < repeatsMax && !worker.load.over.Load(); repeats++ {
		if told.Outcome == coordination.OK || told.Outcome == coordination.Denied {
			break
		}
		told = worker.make(call)
	}
	return told
}

// transact makes a transaction: at times once without a key, else until its outcome is known.
func (worker worker) transact(operations ...coordination.Operation) coordination.Record {
	call := worker.call(operations...)
	call.Transaction = true
	if worker.random.Intn(4) == 0 {
		return worker.make(call)
	}
	return worker.insist(call)
}

// get reads a document; false: there is none, or nobody answers.
func (worker worker) get(key int) (coordination.Operation, bool) {
	told := worker.do(coordination.Operation{Kind: coordination.Get, Keys: []int{key}})
	return told.Operations[0], told.Outcome == coordination.OK
}

// claim acquires locks; false: they are held, or nobody answers.
func (worker worker) claim(shared bool, wait time.Duration, keys ...int) (coordination.Operation, bool) {
	told := worker.insist(worker.call(coordination.Operation{
		Kind: coordination.Acquire, Keys: keys, Shared: shared, WaitMs: wait.Milliseconds(),
		TTLMs: 300 + worker.random.Int63n(600),
	}))
	return told.Operations[0], told.Outcome == coordination.OK
}

func (worker worker) release(token string) coordination.Record {
	return worker.insist(worker.call(coordination.Operation{Kind: coordination.Release, Token: token}))
}

// outlast waits until about the end of a lease.
func (worker worker) outlast(held coordination.Operation) {
	lease := time.Duration(held.TTLMs) * time.Millisecond
	time.Sleep(lease - lease/10 + time.Duration(worker.random.Int63n(int64(lease/3))))
}

func key(random *rand.Rand) int { return random.Intn(coordination.GroupKeys) }

// transfer holds both locks, reads both documents, and mostly moves an amount: at times too late.
func (worker worker) transfer() {
	if worker.random.Intn(8) == 0 {
		worker.do(coordination.Operation{Kind: coordination.Show, Keys: []int{key(worker.random)}})
		return
	}
	shared := worker.random.Intn(5) == 0
	wait := time.Duration(worker.random.Intn(3)) * 150 * time.Millisecond
	held, isHeld := worker.claim(shared, wait, 0, 1)
	if !isHeld {
		return
	}
	first, hasFirst := worker.get(0)
	second, hasSecond := worker.get(1)
	if worker.random.Intn(8) == 0 {
		worker.outlast(held)
	}
	var told coordination.Record
	if shared {
		told = worker.release(held.Token)
	} else {
		amount := worker.random.Int63n(20) - 10
		if !hasFirst || !hasSecond { // at the begin: if both are there, it is not done
			first.N, second.N, amount = beginning/2, beginning/2, 0
		}
		told = worker.transact(
			coordination.Operation{
				Kind: coordination.Put, Keys: []int{0}, N: first.N - amount, Token: held.Token, IfEtag: first.Etag,
				IfAbsent: first.Etag == 0,
			},
			coordination.Operation{
				Kind: coordination.Put, Keys: []int{1}, N: second.N + amount, Token: held.Token,
				IfAbsent: second.Etag == 0,
			},
			coordination.Operation{Kind: coordination.Release, Token: held.Token},
		)
	}
	if told.Outcome == coordination.OK && hasFirst && hasSecond { // so the locks were held meanwhile
		worker.recorder.tell(coordination.Record{
			Kind: coordination.Balance, Client: worker.number, Call: told.Call, Return: told.Return,
			Group: worker.group, Name: told.Name, Sum: first.N + second.N,
		})
	}
}

// finish reads all keys, so that what was lost is missed.
func (load *coordinating) finish(client *client) error {
	load.over.Store(true)
	for stays := range load.stays.Load() + 1 {
		for number := range anyGroups + transferGroups {
			worker := worker{client, load, load.group(stays, number)}
			if err := worker.readAll(); err != nil {
				return err
			}
		}
	}
	now := client.recorder.now()
	client.recorder.tell(coordination.Record{Kind: coordination.End, Call: now, Return: now})
	return nil
}

// readAll reads the documents and the locks of a group.
func (worker worker) readAll() error {
	for key := range coordination.GroupKeys {
		for _, kind := range []string{coordination.Get, coordination.Show} {
			if err := worker.reads(coordination.Operation{Kind: kind, Keys: []int{key}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// reads repeats a read until it is answered.
func (worker worker) reads(operation coordination.Operation) error {
	for since := time.Now(); ; {
		told := worker.do(operation)
		if told.Outcome == coordination.OK || told.Outcome == coordination.Denied {
			return nil
		}
		if time.Since(since) > calmMax {
			return fmt.Errorf("%s of group %s fails for %v: %s", operation.Kind, worker.group, calmMax, told.Code)
		}
	}
}

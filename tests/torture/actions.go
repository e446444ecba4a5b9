package main

import (
	"time"

	"sluice.torture/coordination"
)

// actions are what a client does in a group in which anything is done, some more often than others.
var actions = []func(worker){
	worker.look, worker.look, worker.look,
	worker.writeOver, worker.change, worker.change, worker.change, worker.create, worker.remove, worker.count,
	worker.move, worker.move, worker.moveByCounting,
	worker.hold, worker.hold, worker.hold, worker.hold, worker.share, worker.share, worker.intrude,
}

// look reads a document or a lock.
func (worker worker) look() {
	kind := coordination.Get
	if worker.random.Intn(3) == 0 {
		kind = coordination.Show
	}
	worker.do(coordination.Operation{Kind: kind, Keys: []int{key(worker.random)}})
}

// perhaps makes a call until its outcome is known, or only once.
func (worker worker) perhaps(operation coordination.Operation) coordination.Record {
	if worker.random.Intn(2) == 0 {
		return worker.do(operation)
	}
	return worker.insist(worker.call(operation))
}

// writeOver writes a document without a condition on what is there.
func (worker worker) writeOver() {
	worker.perhaps(coordination.Operation{
		Kind: coordination.Put, Keys: []int{key(worker.random)}, N: worker.random.Int63n(1000),
		IfExists: worker.random.Intn(3) == 0,
	})
}

// change reads a document and writes it if nobody else has done so.
func (worker worker) change() {
	found, isThere := worker.get(key(worker.random))
	if !isThere {
		return
	}
	put := coordination.Operation{Kind: coordination.Put, Keys: found.Keys, N: found.N + 1, IfEtag: found.Etag}
	if worker.random.Intn(3) == 0 {
		put.IfEtag, put.IfVersion = 0, found.Version
	}
	worker.perhaps(put)
}

// create writes a document that is not there, at times for a short time.
func (worker worker) create() {
	put := coordination.Operation{
		Kind: coordination.Put, Keys: []int{key(worker.random)}, N: worker.random.Int63n(1000),
		IfAbsent: worker.random.Intn(3) > 0,
	}
	if worker.random.Intn(2) == 0 {
		put.TTLMs = 200 + worker.random.Int63n(600)
	}
	worker.perhaps(put)
}

// remove deletes a document, mostly as it was read.
func (worker worker) remove() {
	found, isThere := worker.get(key(worker.random))
	if !isThere {
		return
	}
	remove := coordination.Operation{Kind: coordination.Delete, Keys: found.Keys}
	if worker.random.Intn(3) > 0 {
		remove.IfEtag = found.Etag
	}
	worker.do(remove)
}

// count adds to the number of a document.
func (worker worker) count() {
	worker.perhaps(coordination.Operation{
		Kind: coordination.Increment, Keys: []int{key(worker.random)}, N: 1 + worker.random.Int63n(5),
	})
}

// move moves an amount from one document to the other if nobody else has changed them.
func (worker worker) move() {
	first, isThere := worker.get(0)
	if !isThere {
		return
	}
	second, isThere := worker.get(1)
	if !isThere {
		return
	}
	worker.transact(
		coordination.Operation{Kind: coordination.Put, Keys: first.Keys, N: first.N - 1, IfEtag: first.Etag},
		coordination.Operation{Kind: coordination.Put, Keys: second.Keys, N: second.N + 1, IfEtag: second.Etag},
	)
}

// moveByCounting moves an amount whatever there is.
func (worker worker) moveByCounting() {
	worker.transact(
		coordination.Operation{Kind: coordination.Increment, Keys: []int{0}, N: -1},
		coordination.Operation{Kind: coordination.Increment, Keys: []int{1}, N: 1},
	)
}

// hold holds the lock of a document and writes that under its token: at times after the lease, and at times
// in one transaction with the release. Some holders forget to release.
func (worker worker) hold() {
	wait := time.Duration(worker.random.Intn(4)) * 100 * time.Millisecond
	held, isHeld := worker.claim(false, wait, key(worker.random))
	if !isHeld {
		return
	}
	found, _ := worker.get(held.Keys[0])
	put := coordination.Operation{
		Kind: coordination.Put, Keys: held.Keys, N: found.N + 1, Token: held.Token,
	}
	switch worker.random.Intn(6) {
	case 0:
		worker.perhaps(put)
		worker.outlast(held)
		worker.do(put)
		return
	case 1:
		worker.do(coordination.Operation{Kind: coordination.Renew, Token: held.Token, TTLMs: held.TTLMs})
	case 2:
		worker.outlast(held)
	case 3:
		return
	}
	if worker.random.Intn(2) == 0 {
		release := coordination.Operation{Kind: coordination.Release, Token: held.Token}
		worker.transact(put, release)
		return
	}
	worker.perhaps(put)
	worker.release(held.Token)
}

// share holds a lock with others, and looks who they are.
func (worker worker) share() {
	wait := time.Duration(worker.random.Intn(3)) * 100 * time.Millisecond
	held, isHeld := worker.claim(true, wait, key(worker.random))
	if !isHeld {
		return
	}
	worker.do(coordination.Operation{Kind: coordination.Show, Keys: held.Keys})
	if worker.random.Intn(4) > 0 {
		worker.release(held.Token)
	}
}

// intrude breaks a lock, or takes one in a transaction that writes the document of the other key.
func (worker worker) intrude() {
	at := key(worker.random)
	if worker.random.Intn(3) == 0 {
		worker.do(coordination.Operation{Kind: coordination.Break, Keys: []int{at}})
		return
	}
	told := worker.transact(
		coordination.Operation{Kind: coordination.Acquire, Keys: []int{at}, TTLMs: 300},
		coordination.Operation{Kind: coordination.Put, Keys: []int{1 - at}, N: worker.random.Int63n(1000)},
	)
	if told.Outcome == coordination.OK {
		worker.release(told.Operations[0].Token)
	}
}

package coordination

import (
	"slices"
	"strings"
	"testing"
)

// at makes a record of one group, with times in milliseconds.
func at(call, end int64, outcome, name string, operations ...Operation) Record {
	const ms = 1_000_000
	return Record{
		Kind: Called, Call: call * ms, Return: end * ms, Outcome: outcome, Group: "g", Name: name,
		Operations: operations, Transaction: len(operations) > 1,
	}
}

func ok(call, end int64, name string, operations ...Operation) Record {
	return at(call, end, OK, name, operations...)
}

func lost(call, end int64, name string, operations ...Operation) Record {
	return at(call, end, Unknown, name, operations...)
}

func deny(call, end int64, code, name string, operations ...Operation) Record {
	record := at(call, end, Denied, name, operations...)
	record.Code = code
	return record
}

// repeatable is a call that the server knows again.
func repeatable(record Record) Record {
	record.Repeatable = true
	return record
}

func duplicate(record Record) Record {
	record.Repeatable, record.Duplicate = true, true
	return record
}

// elsewhere is a call in another group.
func elsewhere(record Record) Record {
	record.Group = "h"
	return record
}

func read(key int, by string, n int64, version, etag uint64) Operation {
	return Operation{Kind: Get, Keys: []int{key}, By: by, N: n, Version: version, Etag: etag}
}

func put(key int, n int64, version, etag uint64) Operation {
	return Operation{Kind: Put, Keys: []int{key}, N: n, Version: version, Etag: etag}
}

func (operation Operation) ifEtag(etag uint64) Operation {
	operation.IfEtag = etag
	return operation
}

func (operation Operation) under(token string) Operation {
	operation.Token = token
	return operation
}

func (operation Operation) heldBy(owner string) Operation {
	operation.Holder = owner
	return operation
}

func (operation Operation) times(ttlMs int64) Operation {
	operation.TTLMs = ttlMs
	return operation
}

func (operation Operation) together() Operation {
	operation.Shared = true
	return operation
}

// acquire is for half a second.
func acquire(key int, token string, fencing uint64) Operation {
	return Operation{Kind: Acquire, Keys: []int{key}, Token: token, Fencing: fencing, TTLMs: 500}
}

func release(token string) Operation { return Operation{Kind: Release, Token: token} }

func show(key int, holders ...Holder) Operation {
	return Operation{Kind: Show, Keys: []int{key}, Holders: holders}
}

// A history as it should be: a holder is late, an answer is lost, and a transaction is repeated.
var good = []Record{
	ok(0, 10, "a", put(0, 1, 1, 1)),
	ok(0, 20, "b", put(1, 5, 1, 2)),
	ok(30, 40, "c", read(0, "a", 1, 1, 1)),
	ok(50, 60, "d", put(0, 2, 2, 3).ifEtag(1)),
	deny(50, 70, VersionMismatch, "e", put(0, 3, 2, 0).ifEtag(1)),
	ok(80, 90, "f", acquire(0, "t1", 4)),
	deny(100, 110, LockHeld, "g", acquire(0, "", 0).heldBy("f")),
	ok(120, 130, "h", put(0, 4, 3, 5).under("t1")),
	ok(600, 610, "i", acquire(0, "t2", 6)),
	deny(620, 630, LeaseLost, "j", put(0, 7, 0, 0).under("t1")),
	repeatable(lost(640, 650, "k", put(0, 8, 0, 0).under("t2"), put(1, 9, 0, 0).ifEtag(2), release("t2"))),
	duplicate(ok(660, 670, "k", put(0, 8, 4, 7).under("t2"), put(1, 9, 2, 8).ifEtag(2), release("t2"))),
	ok(680, 690, "l", read(1, "k", 9, 2, 8)),
	ok(700, 710, "m", put(1, 10, 3, 9).ifEtag(8)),
	ok(720, 730, "n", put(1, 11, 4, 10)),
	lost(740, 750, "o", put(1, 12, 0, 0)),
	ok(760, 770, "p", Operation{Kind: Delete, Keys: []int{1}}),
	deny(780, 790, NotFound, "q", Operation{Kind: Get, Keys: []int{1}}),
	ok(800, 810, "r", read(0, "k", 8, 4, 7)),
	{Kind: Balance, Group: "g", Name: "r", Sum: 17},
	elsewhere(ok(820, 830, "s", put(0, 1, 1, 11))),
	elsewhere(ok(840, 850, "t", put(1, 1, 1, 12))),
	elsewhere(ok(860, 870, "u", read(0, "s", 1, 1, 11))),
	elsewhere(ok(860, 870, "v", read(1, "t", 1, 1, 12))),
	{Kind: End},
}

func TestAHistoryAsItShouldBe(t *testing.T) {
	if problems := Problems(good); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

func TestEveryPlantIsFound(t *testing.T) {
	found := Found(good)
	for _, plant := range Plants {
		if !found[plant.Name] {
			t.Error("not found:", plant.Name)
		}
	}
}

// Without the token that makes it one, the same write is as it should be.
func TestALostFenceIsFoundForItsToken(t *testing.T) {
	for _, plant := range Plants {
		if plant.Name != "lost fence" {
			continue
		}
		changed := plant.apply(good)
		if found := WithoutOrder(changed); len(found) != 1 {
			t.Error("not found:", found)
		}
		planted := &changed[len(changed)-1]
		planted.Operations[0].Token = ""
		if problems := Problems(changed); len(problems) > 0 {
			t.Error(problems)
		}
	}
}

func TestNumbersGrow(t *testing.T) {
	records := []Record{
		ok(0, 10, "a", put(0, 1, 1, 5)), ok(5, 20, "b", put(1, 1, 1, 4)), ok(30, 40, "c", acquire(0, "t", 5)),
	}
	if found := numbersGrow(records); len(found) != 1 || !strings.Contains(found[0], "of c") {
		t.Error(found)
	}
}

func TestHoldersAreApart(t *testing.T) {
	first, second := ok(0, 10, "a", acquire(0, "t1", 1)), ok(300, 310, "b", acquire(0, "t2", 2))
	breaks := ok(200, 210, "c", Operation{Kind: Break, Keys: []int{0}, N: 1})
	for _, told := range []struct {
		problems int
		records  []Record
	}{
		{1, []Record{first, second}},
		{0, []Record{first, breaks, second}},
		{0, []Record{first, second, at(20, 30, Unknown, "d", release("t1"))}},
		{0, []Record{first, second, {Kind: Fault, Code: Jump, Call: 100_000_000, Return: 200_000_000}}},
	} {
		if found := holdersApart(told.records); len(found) != told.problems {
			t.Error(found)
		}
	}
}

func TestGrantsEnd(t *testing.T) {
	claim := ok(0, 10, "a", acquire(0, "t", 1))
	late := ok(2600, 2610, "b", show(0, Holder{"a", 1}))
	for _, told := range []struct {
		problems int
		records  []Record
	}{
		{1, []Record{claim, late}},
		{0, []Record{claim, ok(2400, 2410, "b", show(0, Holder{"a", 1}))}},
		{0, []Record{claim, lost(300, 310, "c", Operation{Kind: Renew, Token: "t", TTLMs: 500}), late}},
		{0, []Record{claim, ok(300, 310, "c", Operation{Kind: Renew, Token: "t", TTLMs: 500}), late}},
		{1, []Record{claim, deny(2600, 2610, LockHeld, "d", acquire(0, "", 0).heldBy("a"))}},
	} {
		if found := grantsEnd(told.records); len(found) != told.problems {
			t.Error(found)
		}
	}
}

func TestSumsAgree(t *testing.T) {
	records := []Record{{Kind: Balance, Sum: 1, Group: "g"}, {Kind: Balance, Sum: 2, Group: "h"}}
	if found := balancesAgree(records); len(found) > 0 {
		t.Error(found)
	}
	records = append(records, Record{Kind: Balance, Sum: 3, Group: "g"})
	if found := balancesAgree(records); len(found) != 1 {
		t.Error(found)
	}
}

// The search says that it does not know rather than that there is no order, or one.
func TestASearchThatTakesTooLongIsNoOrder(t *testing.T) {
	records := []Record{ok(0, 10, "a", put(0, 1, 1, 1))}
	for number := range int64(40) {
		records = append(records, lost(20+number, 70, strings.Repeat("b", int(number)), put(0, number, 0, 0)))
	}
	records = append(records, ok(100, 110, "c", read(0, "nobody", 1, 2, 2)))
	found := WithoutOrder(records)
	if !strings.HasPrefix(found["g"], "unknown") {
		t.Error(found)
	}
}

func legal(records []Record) bool { return len(WithoutOrder(records)) == 0 }

func TestTheLifeOfDocumentsAndLocks(t *testing.T) {
	for name, life := range lives {
		records := slices.Concat(begin, life.then)
		if legal(records) != life.legal {
			t.Errorf("%s: %v", name, WithoutOrder(records))
		}
	}
}

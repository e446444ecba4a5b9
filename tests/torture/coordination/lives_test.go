package coordination

// begin is how each life begins: a document with a number, and a lock that is held.
var begin = []Record{
	ok(0, 10, "a", put(0, 1, 1, 1)),
	ok(20, 30, "b", acquire(0, "t1", 2)),
}

type life struct {
	legal bool
	then  []Record
}

// Each is a history of its own, which goes on after the begin.
var lives = map[string]life{
	"a write of unknown outcome may take effect late": {true, []Record{
		lost(40, 50, "c", put(0, 2, 0, 0)), ok(60, 70, "d", read(0, "a", 1, 1, 1)),
		ok(80, 90, "e", read(0, "c", 2, 2, 3)),
	}},
	"or never": {true, []Record{
		lost(40, 50, "c", put(0, 2, 0, 0)), ok(60, 70, "d", put(0, 3, 2, 3)),
		ok(80, 90, "e", read(0, "d", 3, 2, 3)),
	}},
	"or unseen": {true, []Record{
		lost(40, 50, "c", put(0, 2, 0, 0)), ok(60, 70, "d", put(0, 3, 3, 4)),
	}},
	"but once": {false, []Record{
		lost(40, 50, "c", put(0, 2, 0, 0)), ok(60, 70, "d", put(0, 3, 4, 5)),
	}},
	"a version is counted": {false, []Record{
		ok(40, 50, "c", put(0, 2, 3, 3)),
	}},
	"a write is not taken back": {false, []Record{
		ok(40, 50, "c", put(0, 2, 2, 3)), ok(60, 70, "d", read(0, "a", 1, 1, 1)),
	}},
	"what was denied had no effect": {false, []Record{
		deny(40, 50, VersionMismatch, "c", put(0, 2, 1, 0).ifEtag(7)), ok(60, 70, "d", read(0, "c", 2, 2, 3)),
	}},
	"a condition that holds is not denied": {false, []Record{
		deny(40, 50, VersionMismatch, "c", put(0, 2, 1, 0).ifEtag(1)),
	}},
	"a number is added": {true, []Record{
		ok(40, 50, "c", Operation{Kind: Increment, Keys: []int{0}, N: 4, Version: 2, Etag: 3}),
		ok(60, 70, "d", read(0, "a", 5, 2, 3)),
	}},
	"a number is added once": {false, []Record{
		ok(40, 50, "c", Operation{Kind: Increment, Keys: []int{0}, N: 4, Version: 2, Etag: 3}),
		ok(60, 70, "d", read(0, "a", 9, 2, 3)),
	}},
	"a document ends by its time": {true, []Record{
		ok(40, 50, "c", put(0, 2, 2, 3).times(100)),
		deny(110, 120, NotFound, "d", Operation{Kind: Get, Keys: []int{0}}), ok(130, 140, "e", put(0, 3, 1, 4)),
	}},
	"and not before": {false, []Record{
		ok(40, 50, "c", put(0, 2, 2, 3).times(200)),
		deny(110, 120, NotFound, "d", Operation{Kind: Get, Keys: []int{0}}),
	}},
	"a repeated write writes anew once its document is over": {true, []Record{
		repeatable(lost(40, 50, "c", put(0, 2, 0, 0).times(100))),
		repeatable(ok(300, 310, "c", put(0, 2, 1, 3).times(100))),
		ok(320, 330, "d", read(0, "c", 2, 1, 3)),
	}},
	"a repeated write does not write anew before": {false, []Record{
		repeatable(lost(40, 50, "c", put(0, 2, 0, 0).times(200))),
		repeatable(ok(60, 70, "c", put(0, 2, 1, 3).times(200))),
	}},
	"a repeated write writes once": {true, []Record{
		repeatable(lost(40, 50, "c", put(0, 2, 0, 0))), repeatable(ok(60, 70, "c", put(0, 2, 2, 3))),
		ok(80, 90, "d", put(0, 3, 3, 4)),
	}},
	"a transaction is whole": {false, []Record{
		ok(40, 50, "c", put(0, 2, 2, 3), put(1, 2, 1, 4)),
		deny(60, 70, NotFound, "d", Operation{Kind: Get, Keys: []int{1}}),
	}},
	"also if its outcome is unknown": {false, []Record{
		lost(40, 50, "c", put(0, 2, 0, 0), put(1, 2, 0, 0)), ok(60, 70, "d", read(0, "c", 2, 2, 3)),
		deny(80, 90, NotFound, "e", Operation{Kind: Get, Keys: []int{1}}),
	}},
	"a transaction that is repeated is done once": {false, []Record{
		repeatable(lost(40, 50, "c", put(0, 2, 0, 0), put(1, 2, 0, 0))), ok(60, 70, "d", read(0, "c", 2, 2, 3)),
		repeatable(ok(80, 90, "c", put(0, 2, 3, 5), put(1, 2, 2, 6))),
	}},
	"a lock is held until its time is over": {false, []Record{
		ok(300, 310, "c", acquire(0, "t2", 3)),
	}},
	"then somebody else may hold it": {true, []Record{
		ok(500, 510, "c", acquire(0, "t2", 3)),
	}},
	"and the first one no more": {false, []Record{
		ok(500, 510, "c", acquire(0, "t2", 3)), ok(520, 530, "d", put(0, 2, 2, 4).under("t1")),
	}},
	"unless it was renewed": {false, []Record{
		ok(300, 310, "c", Operation{Kind: Renew, Token: "t1", Fencing: 2, TTLMs: 500}),
		ok(600, 610, "d", acquire(0, "t2", 3)),
	}},
	"the time of a grant may begin before others see it": {true, []Record{
		ok(40, 50, "c", release("t1")), ok(60, 300, "d", acquire(0, "t2", 3)), ok(200, 210, "e", show(0)),
		deny(530, 540, LeaseLost, "f", put(0, 2, 0, 0).under("t2")),
	}},
	"a claim of unknown outcome does not make time pass": {false, []Record{
		lost(40, 50, "c", acquire(0, "", 0)), deny(60, 70, LeaseLost, "d", put(0, 2, 0, 0).under("t1")),
	}},
	"a grant that nobody takes may end at any time": {true, []Record{
		ok(40, 50, "c", release("t1")), lost(60, 70, "d", acquire(0, "", 0)),
		ok(80, 90, "e", show(0, Holder{"d", 3})), ok(100, 110, "f", acquire(0, "t2", 4)),
	}},
	"a claim that is repeated has its grant": {false, []Record{
		ok(40, 50, "c", release("t1")), repeatable(ok(60, 70, "d", acquire(0, "t2", 3))),
		repeatable(ok(80, 90, "d", acquire(0, "t3", 4))),
	}},
	"whoever is in the way holds the lock": {false, []Record{
		ok(40, 50, "c", release("t1")), deny(60, 70, LockHeld, "d", acquire(0, "", 0).heldBy("b")),
	}},
	"readers share a lock": {true, []Record{
		ok(40, 50, "c", release("t1")), ok(60, 70, "d", acquire(0, "t2", 3).together()),
		ok(80, 90, "e", acquire(0, "t3", 4).together()), ok(100, 110, "f", show(0, Holder{"d", 3}, Holder{"e", 4})),
	}},
	"no writer is among them": {false, []Record{
		ok(40, 50, "c", release("t1")), ok(60, 70, "d", acquire(0, "t2", 3).together()),
		ok(80, 90, "e", acquire(0, "t3", 4)),
	}},
	"a token is one of its key": {false, []Record{
		ok(40, 50, "c", put(1, 2, 1, 3).under("t1")),
	}},
	"a release may be repeated": {true, []Record{
		lost(40, 50, "c", release("t1")), ok(60, 70, "d", acquire(0, "t2", 3)), ok(80, 90, "c", release("t1")),
	}},
	"a lock that was broken is lost": {false, []Record{
		ok(40, 50, "c", Operation{Kind: Break, Keys: []int{0}, N: 1}), ok(60, 70, "d", put(0, 2, 2, 3).under("t1")),
	}},
}

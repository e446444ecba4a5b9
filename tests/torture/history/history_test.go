package history

import (
	"strings"
	"testing"
)

// at makes a record of one queue, with times in milliseconds; `k1` is the message whose id is `i1`.
func at(call, end int64, kind, outcome string, record Record) Record {
	const ms = 1_000_000
	record.Kind, record.Outcome, record.Queue = kind, outcome, "q"
	record.Call, record.Return = call*ms, end*ms
	return record
}

func send(call, end int64, outcome, key, id string) Record {
	return at(call, end, Send, outcome, Record{Key: key, ID: id})
}

func repeated(call, end int64, key, id string) Record {
	return at(call, end, Send, OK, Record{Key: key, ID: id, Duplicate: true})
}

func delivery(call, end int64, key, id, receipt string) Record {
	return at(call, end, Delivery, OK, Record{Key: key, ID: id, Receipt: receipt, LeaseMs: 1000})
}

func ack(call, end int64, outcome, key, receipt, result string) Record {
	return at(call, end, Ack, outcome, Record{Key: key, Receipt: receipt, Result: result})
}

func nack(call, end int64, outcome, key, receipt string) Record {
	return at(call, end, Nack, outcome, Record{Key: key, Receipt: receipt})
}

func read(call, end int64, key, id, state, result string) Record {
	return at(call, end, Result, OK, Record{Key: key, ID: id, State: state, Result: result})
}

func listed(call, end int64, key, id, state string) Record {
	return at(call, end, Listed, OK, Record{Key: key, ID: id, State: state})
}

func figures(call, end int64, stored, done int) Record {
	return at(call, end, Figures, OK, Record{Stored: stored, Done: done})
}

// A history as it should be: the answers to the first send and to the first ack of k2 are lost, and both are
// repeated; k1 is given back once, and its second lease expires.
var good = []Record{
	send(0, 10, OK, "k1", "i1"),
	send(0, 20, Unknown, "k2", ""),
	figures(22, 25, 2, 0),
	repeated(30, 40, "k2", "i2"),
	delivery(50, 60, "k1", "i1", "r1"),
	read(50, 60, "k1", "i1", Pending, ""),
	nack(70, 80, OK, "k1", "r1"),
	delivery(90, 100, "k1", "i1", "r2"),
	delivery(90, 100, "k2", "i2", "r3"),
	ack(110, 120, Unknown, "k2", "r3", "first"),
	ack(130, 140, Already, "k2", "r3", "second"),
	read(150, 160, "k2", "i2", Done, "first"),
	figures(170, 180, 2, 1),
	delivery(1150, 1160, "k1", "i1", "r4"),
	ack(1170, 1180, Lost, "k1", "r2", "late"),
	ack(1170, 1190, OK, "k1", "r4", "in time"),
	send(1200, 1210, OK, "k3", "i3"),
	delivery(1220, 1230, "k3", "i3", "r5"),
	ack(1240, 1250, OK, "k3", "r5", ""),
	send(1260, 1270, Refused, "k4", ""),
	figures(1300, 1310, 3, 3),
	listed(1320, 1330, "k1", "i1", Done),
	listed(1320, 1330, "k2", "i2", Done),
	listed(1320, 1330, "k3", "i3", Done),
	at(1340, 1340, End, OK, Record{}),
}

func TestAHistoryAsItShouldBe(t *testing.T) {
	if problems := Problems(good); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
}

func TestEveryPlantIsFound(t *testing.T) {
	for _, missed := range Missed(good) {
		t.Error("not found:", missed)
	}
}

// Each line is a history of its own, which goes on after k1 was sent and delivered with r1.
func TestTheLifeOfAMessage(t *testing.T) {
	begin := []Record{send(0, 10, OK, "k1", "i1"), delivery(20, 30, "k1", "i1", "r1")}
	for name, told := range map[string]struct {
		legal bool
		then  []Record
	}{
		"an ack of unknown outcome may take effect late": {true, []Record{
			ack(40, 50, Unknown, "k1", "r1", "a"), read(60, 70, "k1", "i1", Pending, ""),
			read(80, 90, "k1", "i1", Done, "a"),
		}},
		"or never": {true, []Record{
			ack(40, 50, Unknown, "k1", "r1", "a"), delivery(1050, 1060, "k1", "i1", "r2"),
			ack(1070, 1080, OK, "k1", "r2", "b"), read(1090, 1095, "k1", "i1", Done, "b"),
		}},
		"but not after an answer has shown it": {false, []Record{
			ack(40, 50, Unknown, "k1", "r1", "a"), read(60, 70, "k1", "i1", Done, "a"),
			delivery(1050, 1060, "k1", "i1", "r2"),
		}},
		"the first result stays": {false, []Record{
			ack(40, 50, OK, "k1", "r1", "a"), ack(60, 70, Already, "k1", "r1", "b"),
			read(80, 90, "k1", "i1", Done, "b"),
		}},
		"a newer delivery makes the receipt invalid": {false, []Record{
			delivery(1050, 1060, "k1", "i1", "r2"), ack(1070, 1080, OK, "k1", "r1", "a"),
		}},
		"a receipt that was refused stays so": {false, []Record{
			ack(1050, 1060, Lost, "k1", "r1", "a"), ack(1070, 1080, OK, "k1", "r1", "a"),
		}},
		"a receipt that has acked is not refused": {false, []Record{
			ack(40, 50, OK, "k1", "r1", "a"), ack(60, 70, Lost, "k1", "r1", "a"),
		}},
		"nobody is told of an ack that nobody made": {false, []Record{
			ack(40, 50, Already, "k1", "r1", "a"),
		}},
		"a message that was stored is found": {false, []Record{
			read(40, 50, "k1", "i1", NotFound, ""),
		}},
		"what was refused had no effect": {false, []Record{
			ack(40, 50, Refused, "k1", "r1", "a"), read(60, 70, "k1", "i1", Done, "a"),
		}},
	} {
		records := append(append([]Record{}, begin...), told.then...)
		if found := WithoutOrder(records); (len(found) == 0) != told.legal {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestAnIdThatWasOutOfOrder(t *testing.T) {
	records := []Record{send(0, 10, OK, "k1", "i2"), send(5, 20, OK, "k2", "i1"), send(15, 30, OK, "k3", "i1b")}
	if found := idsInOrder(records, nil); len(found) != 1 || !strings.Contains(found[0], "k3") {
		t.Error(found)
	}
}

func TestFiguresAreOfSomeMomentOfTheRead(t *testing.T) {
	for _, told := range []struct {
		stored int
		legal  bool
	}{{0, false}, {1, true}, {2, true}, {3, false}} {
		records := []Record{
			send(0, 10, OK, "k1", "i1"), send(15, 40, OK, "k2", "i2"), send(50, 60, OK, "k3", "i3"),
			figures(20, 30, told.stored, 0),
		}
		if found := figuresAgree(records, byMessage(records)); (len(found) == 0) != told.legal {
			t.Errorf("%d stored: %v", told.stored, found)
		}
	}
}

func TestALeaseLastsUnlessTheTimeJumps(t *testing.T) {
	records := []Record{
		delivery(0, 10, "k1", "i1", "r1"), delivery(500, 510, "k1", "i1", "r2"),
	}
	if found := leasesKept(records, byMessage(records)); len(found) != 1 {
		t.Error("not found:", found)
	}
	records = append(records, at(200, 300, Fault, "", Record{Code: Jump}))
	if found := leasesKept(records, byMessage(records)); len(found) != 0 {
		t.Error(found)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"sluice.torture/history"
)

const (
	senders, workers, readers = 6, 12, 2
	queues                    = 4
	lease                     = 2 * time.Second
	// between is the mean pause of a client between two calls.
	between = 5 * time.Millisecond
	// again is the mean pause after a call that failed.
	again = 50 * time.Millisecond
	// kept is how long a message and its result are kept: longer than a run.
	kept = 12 * time.Hour
	// openMax is how many messages may be open before senders wait.
	openMax = 300
	// recentMax is how many messages readers choose from.
	recentMax = 200
)

func queueName(number int) string { return fmt.Sprintf("q%d", number) }

// workload is what all clients share.
type workload struct {
	over   atomic.Bool  // the run has failed, and nobody waits for outcomes any more
	open   atomic.Int64 // messages that were sent, and are not acked as far as clients know
	mutex  sync.Mutex
	recent []history.Record // sends, of whose messages readers ask for the result
}

// send sends one message under a key of its own, until its outcome is known; at times once more.
func (load *workload) send(client *client, number int) {
	key := fmt.Sprintf("k%d-%d", client.number, number)
	queue := queueName(client.random.Intn(queues))
	body := map[string]any{
		"payload": key, "result_ttl_ms": kept.Milliseconds(), "priority": client.random.Intn(10),
	}
	if client.random.Intn(10) == 0 {
		body["delay_ms"] = client.random.Intn(500)
	}
	repeats := client.random.Intn(10) == 0
	for load.open.Load() >= openMax && !load.over.Load() {
		client.pause(again)
	}
	load.open.Add(1)
	for !load.over.Load() {
		answer := client.call("POST", "/v1/queues/"+queue+"/messages", body, map[string]string{"Idempotency-Key": key})
		record := answer.Record
		record.Kind, record.Queue, record.Key = history.Send, queue, key
		if record.Outcome == history.OK {
			var stored struct {
				ID        string
				Duplicate bool
			}
			read(answer.body, &stored, &record)
			record.ID, record.Duplicate = stored.ID, stored.Duplicate
		}
		client.recorder.add(record)
		if record.Outcome == history.OK {
			load.remember(client.random, record)
			if !repeats {
				return
			}
			repeats = false
		}
	}
}

func (load *workload) remember(random *rand.Rand, send history.Record) {
	load.mutex.Lock()
	defer load.mutex.Unlock()
	if len(load.recent) < recentMax {
		load.recent = append(load.recent, send)
	} else {
		load.recent[random.Intn(recentMax)] = send
	}
}

// read decodes an answer; one that cannot be read is noted in the record.
func read(body []byte, into any, record *history.Record) {
	if err := json.Unmarshal(body, into); err != nil {
		record.Outcome, record.Code = history.Unknown, "unexpected: "+string(body)
	}
}

// work receives some messages of one queue, and settles them, most of them well.
func (load *workload) work(client *client, _ int) {
	queue := queueName(client.random.Intn(queues))
	answer := client.call("POST", "/v1/queues/"+queue+"/receive", map[string]any{
		"max": 1 + client.random.Intn(4), "wait_ms": 200, "lease_ms": lease.Milliseconds(),
	}, nil)
	var received struct {
		Messages []struct{ ID, Receipt, Payload string }
	}
	if answer.Outcome == history.OK {
		read(answer.body, &received, &answer.Record)
	}
	if len(received.Messages) == 0 {
		return
	}
	var held []history.Record
	for _, message := range received.Messages {
		record := answer.Record
		record.Kind, record.Queue, record.Key = history.Delivery, queue, message.Payload
		record.ID, record.Receipt, record.LeaseMs = message.ID, message.Receipt, lease.Milliseconds()
		client.recorder.add(record)
		held = append(held, history.Record{
			Kind: history.Ack, Queue: queue, Key: record.Key, Receipt: record.Receipt,
		})
	}
	switch client.random.Intn(40) {
	case 0: // forgotten: the lease has to end
		return
	case 1: // too late, or almost
		time.Sleep(lease - lease/20 + time.Duration(client.random.Int63n(int64(lease/10))))
	case 2, 3, 4:
		held[0].Kind = history.Nack
	}
	load.settle(client, held)
}

// settle settles deliveries until the outcome of each is known. Repeats have another result: the first stays.
func (load *workload) settle(client *client, held []history.Record) {
	for number := 0; len(held) > 0 && !load.over.Load(); number++ {
		items := make([]map[string]any, len(held))
		for at := range held {
			items[at] = map[string]any{"receipt": held[at].Receipt, "outcome": "nack", "delay_ms": 0}
			if held[at].Kind == history.Ack {
				held[at].Result = fmt.Sprintf("of client %d, call %d", client.number, min(number, 1))
				items[at] = map[string]any{
					"receipt": held[at].Receipt, "outcome": "ack", "result": held[at].Result,
				}
			}
		}
		answer := client.call("POST", "/v1/settle", map[string]any{"items": items}, nil)
		var open []history.Record
		for at, outcome := range settled(&answer, len(held)) {
			record := held[at]
			record.Client, record.Call, record.Return = answer.Client, answer.Call, answer.Return
			record.Outcome, record.Code = outcome.Outcome, outcome.Code
			client.recorder.add(record)
			if record.Kind == history.Ack && (record.Outcome == history.OK || record.Outcome == history.Already) {
				load.open.Add(-1)
			}
			if record.Outcome == history.Refused || record.Outcome == history.Unknown {
				open = append(open, held[at])
			}
		}
		held = open
	}
}

// settled returns the outcome of each item, in order.
func settled(answer *answer, items int) []history.Record {
	var body struct {
		Results []struct {
			OK      bool
			Already bool `json:"already_settled"`
			Error   struct{ Code string }
		}
	}
	if answer.Outcome == history.OK {
		read(answer.body, &body, &answer.Record)
		if len(body.Results) != items {
			answer.Outcome, answer.Code = history.Unknown, "unexpected: "+string(answer.body)
		}
	}
	outcomes := make([]history.Record, items)
	for at := range outcomes {
		outcomes[at].Outcome, outcomes[at].Code = answer.Outcome, answer.Code
		if answer.Outcome != history.OK {
			continue
		}
		switch result := body.Results[at]; {
		case !result.OK:
			outcomes[at].Outcome, outcomes[at].Code = ofCode(result.Error.Code), named(result.Error.Code)
		case result.Already:
			outcomes[at].Outcome = history.Already
		}
	}
	return outcomes
}

// ask reads the result of a message, or the figures of a queue.
func (load *workload) ask(client *client, _ int) {
	load.mutex.Lock()
	var about history.Record
	if len(load.recent) > 0 {
		about = load.recent[client.random.Intn(len(load.recent))]
	}
	load.mutex.Unlock()
	if about.Key == "" || client.random.Intn(4) == 0 {
		figures(client, queueName(client.random.Intn(queues)))
		return
	}
	answer := client.call("GET", "/v1/messages/"+about.ID+"/result", nil, nil)
	record := answer.Record
	record.Kind, record.Queue, record.Key, record.ID = history.Result, about.Queue, about.Key, about.ID
	if record.Outcome == history.Lost {
		record.Outcome, record.State = history.OK, history.NotFound
	} else if record.Outcome == history.OK {
		var told struct{ State, Result string }
		read(answer.body, &told, &record)
		record.State, record.Result = told.State, told.Result
	}
	client.recorder.add(record)
}

// figures reads the counts of a queue.
func figures(client *client, queue string) history.Record {
	answer := client.call("GET", "/v1/queues/"+queue, nil, nil)
	record := answer.Record
	record.Kind, record.Queue = history.Figures, queue
	if record.Outcome == history.OK {
		var told struct{ Counts map[string]int }
		read(answer.body, &told, &record)
		for _, count := range told.Counts {
			record.Stored += count
		}
		record.Done = told.Counts["done"]
	}
	client.recorder.add(record)
	return record
}

// list reads the messages of a queue, page by page, when nobody changes them.
func list(client *client, queue string) error {
	for cursor := ""; ; {
		path := "/v1/queues/" + queue + "/messages?limit=1000&payload=true"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		answer, err := client.insist("GET", path, nil)
		if err != nil {
			return err
		}
		var page struct {
			Messages []struct{ ID, State, Payload string }
			Next     string
		}
		if err := json.Unmarshal(answer.body, &page); err != nil {
			return err
		}
		for _, message := range page.Messages {
			record := answer.Record
			record.Kind, record.Queue, record.Key = history.Listed, queue, message.Payload
			record.ID, record.State = message.ID, message.State
			if record.State != history.Done {
				record.State = history.Pending
			}
			client.recorder.add(record)
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

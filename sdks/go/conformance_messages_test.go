package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
)

func sendAndReceive(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	id := must(client.Send(ctx, "plain", []byte("{}\x00"), sluice.WithHeader("to", "ann"),
		sluice.WithHeader("from", "bob"), sluice.WithContentType("application/json")))(t)
	message := receiveOne(t, client, "plain")
	equal(t, "id", message.ID, id)
	equal(t, "payload", string(message.Payload), "{}\x00")
	equal(t, "header", message.Header("to"), "ann")
	equal(t, "order of headers", fmt.Sprint(message.Headers), "[{to ann} {from bob}]")
	equal(t, "content type", message.ContentType, "application/json")
	equal(t, "attempt", message.Attempt, 1)
	receiveNone(t, client, "plain")
	check(t, client.Ack(ctx, message.Receipt))
	check(t, client.Ack(ctx, message.Receipt)) // It was settled before: a success.
	_, err := client.Result(ctx, id)
	if !errors.Is(err, sluice.ErrNotFound) {
		t.Fatalf("the message is not gone: %v", err)
	}
}

func sendMany(t *testing.T, client *sluice.Client) {
	ctx := within(t, 30*time.Second)
	messages := make([]sluice.Message, 1000)
	for i := range messages {
		messages[i].Payload = fmt.Append(nil, i)
	}
	sent := must(client.SendMany(ctx, "many", messages))(t)
	wanted := map[string]string{}
	for i, id := range sent.IDs {
		wanted[id] = fmt.Sprint(i)
	}
	equal(t, "number of ids", len(wanted), 1000)
	for len(wanted) > 0 {
		var acks []sluice.Settlement
		received := must(client.Receive(ctx, "many", sluice.ReceiveMax(300)))(t)
		if len(received) == 0 {
			t.Fatalf("%d messages have not come", len(wanted))
		}
		for _, message := range received {
			equal(t, "payload", string(message.Payload), wanted[message.ID])
			delete(wanted, message.ID)
			acks = append(acks, sluice.Ack(message.Receipt))
		}
		for _, err := range must(client.Settle(ctx, acks...))(t) {
			check(t, err)
		}
	}
	receiveNone(t, client, "many")
}

func sendOptions(t *testing.T, client *sluice.Client) {
	t.Run("priority", func(t *testing.T) {
		send(t, client, "priority", "low")
		send(t, client, "priority", "high", sluice.WithPriority(9))
		equal(t, "first", string(receiveOne(t, client, "priority").Payload), "high")
	})
	t.Run("delay", func(t *testing.T) {
		began := time.Now()
		send(t, client, "delay", "later", sluice.WithDelay(400*time.Millisecond))
		receiveNone(t, client, "delay")
		receiveOne(t, client, "delay")
		if time.Since(began) < 400*time.Millisecond {
			t.Fatal("it came early")
		}
	})
	t.Run("time to live", func(t *testing.T) {
		send(t, client, "ttl", "gone", sluice.WithTTL(50*time.Millisecond))
		time.Sleep(300 * time.Millisecond)
		receiveNone(t, client, "ttl")
	})
	t.Run("ordering key", func(t *testing.T) {
		send(t, client, "order", "1", sluice.WithOrderingKey("a"))
		send(t, client, "order", "2", sluice.WithOrderingKey("a"))
		first := receiveOne(t, client, "order")
		equal(t, "first", string(first.Payload), "1")
		receiveNone(t, client, "order")
		check(t, client.Ack(t.Context(), first.Receipt))
		equal(t, "second", string(receiveOne(t, client, "order").Payload), "2")
	})
	t.Run("unique key", func(t *testing.T) {
		unique := sluice.WithUnique(sluice.Unique{Key: "a"})
		equal(t, "id", send(t, client, "unique", "1", unique), send(t, client, "unique", "2", unique))
		equal(t, "payload", string(receiveOne(t, client, "unique").Payload), "1")
		receiveNone(t, client, "unique")
	})
	t.Run("tags", func(t *testing.T) {
		send(t, client, "tags", "1", sluice.WithTags("red", "blue"))
		equal(t, "tags", fmt.Sprint(receiveOne(t, client, "tags").Tags), "[red blue]")
	})
	t.Run("idempotency key", func(t *testing.T) {
		key := sluice.WithIdempotencyKey("k1")
		send(t, client, "keyed", "1", key)
		_, err := client.Send(t.Context(), "keyed", []byte("another"), key)
		if !errors.Is(err, sluice.ErrIdempotencyMismatch) {
			t.Fatalf("another request with the same key: %v", err)
		}
	})
}

func send(t *testing.T, client *sluice.Client, queue, payload string, opts ...sluice.SendOption) string {
	t.Helper()
	return must(client.Send(within(t, 10*time.Second), queue, []byte(payload), opts...))(t)
}

func sendAgain(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	messages := []sluice.Message{{Payload: []byte("1")}, {Payload: []byte("2")}}
	first := must(client.SendMany(ctx, "again", messages, sluice.WithIdempotencyKey("again-1")))(t)
	second := must(client.SendMany(ctx, "again", messages, sluice.WithIdempotencyKey("again-1")))(t)
	equal(t, "ids", fmt.Sprint(second.IDs), fmt.Sprint(first.IDs))
	equal(t, "first duplicate", first.Duplicate, false)
	equal(t, "second duplicate", second.Duplicate, true)
	received := must(client.Receive(ctx, "again", sluice.ReceiveMax(10)))(t)
	equal(t, "messages", len(received), 2)
}

func requestAndReply(t *testing.T, client *sluice.Client) {
	work(t, client.NewWorker("questions", func(_ context.Context, job *sluice.Job) error {
		job.SetResult(append([]byte("re: "), job.Payload...), "text/plain")
		return nil
	}))
	reply := must(client.Request(within(t, 10*time.Second), "questions", []byte("why?")))(t)
	equal(t, "reply", string(reply.Payload), "re: why?")
	equal(t, "content type", reply.ContentType, "text/plain")
	_, err := client.Request(within(t, 300*time.Millisecond), "unheard", []byte("anybody?"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a request that nobody answers: %v", err)
	}
}

func results(t *testing.T, client *sluice.Client) {
	id := send(t, client, "results", "6*7", sluice.WithResultTTL(time.Minute))
	message := receiveOne(t, client, "results")
	go func() {
		time.Sleep(200 * time.Millisecond)
		_, _ = client.Settle(t.Context(), sluice.AckWith(message.Receipt, []byte("42"), "text/plain"))
	}()
	result := must(client.Result(within(t, 10*time.Second), id))(t)
	equal(t, "result", string(result.Payload), "42")

	id = send(t, client, "results", "1/0", sluice.WithResultTTL(time.Minute))
	message = receiveOne(t, client, "results")
	must(client.Settle(t.Context(), sluice.Reject(message.Receipt, "division by zero")))(t)
	_, err := client.Result(within(t, 10*time.Second), id)
	var dead *sluice.DeadLetterError
	if !errors.Is(err, sluice.ErrDead) || !errors.As(err, &dead) || dead.Reason != "rejected" {
		t.Fatalf("the result of a dead letter: %v", err)
	}
}

func flow(t *testing.T, client *sluice.Client) {
	next := func(t *testing.T, queue, wanted, result string) {
		message := receiveOne(t, client, queue)
		equal(t, "payload of "+queue, string(message.Payload), wanted)
		errs := must(client.Settle(t.Context(), sluice.AckWith(message.Receipt, []byte(result), "")))(t)
		check(t, errs[0])
	}
	t.Run("chain", func(t *testing.T) {
		send(t, client, "resize", "photo", sluice.WithChain(sluice.Step{Queue: "upload"}))
		receiveNone(t, client, "upload")
		next(t, "resize", "photo", "small photo")
		next(t, "upload", "small photo", "")
	})
	t.Run("group", func(t *testing.T) {
		pages := []sluice.Step{
			sluice.NewStep("pages", []byte("1")), sluice.NewStep("pages", []byte("2")),
		}
		sent := must(client.SendGroup(t.Context(), pages, sluice.NewStep("books", []byte("all"))))(t)
		next(t, "pages", "1", "")
		receiveNone(t, client, "books")
		progress := must(client.Group(t.Context(), sent.Group))(t)
		equal(t, "progress", fmt.Sprint(progress.Pending, progress.Done), "1 1")
		next(t, "pages", "2", "")
		next(t, "books", "all", "")
	})
	t.Run("parents", func(t *testing.T) {
		parent := send(t, client, "parents", "first")
		send(t, client, "children", "then", sluice.WithDependsOn(parent))
		receiveNone(t, client, "children")
		next(t, "parents", "first", "")
		next(t, "children", "then", "")
	})
}

func schedule(t *testing.T, client *sluice.Client) {
	ctx := within(t, 30*time.Second)
	schedules := client.Schedules()
	state := must(schedules.Put(ctx, sluice.Schedule{
		Name: "tick", Every: time.Second, Queue: "ticks", Message: sluice.Message{Payload: []byte("tick")},
	}))(t)
	if state.NextAt.IsZero() {
		t.Fatal("it has no next time")
	}
	for range 2 {
		message := receiveOne(t, client, "ticks")
		equal(t, "payload", string(message.Payload), "tick")
		check(t, client.Ack(ctx, message.Receipt))
	}
	read := must(schedules.Get(ctx, "tick"))(t)
	equal(t, "message", string(read.Message.Payload), "tick")
	check(t, schedules.Delete(ctx, "tick"))
	queues := sluicepb.NewQueuesClient(client.Conn())
	must(queues.Purge(ctx, &sluicepb.QueueRequest{Queue: "ticks"}))(t)
	time.Sleep(1500 * time.Millisecond)
	receiveNone(t, client, "ticks")
	for one, err := range schedules.List(ctx) {
		check(t, err)
		t.Fatalf("schedule %s is there", one.Name)
	}
}

func budget(t *testing.T, client *sluice.Client) {
	ctx := within(t, 20*time.Second)
	limits := sluicepb.NewLimitsClient(client.Conn())
	allow := func(periodMs uint64) {
		count := uint32(1000)
		rate := &sluicepb.Rate{Count: &count, PeriodMs: &periodMs}
		must(limits.Put(ctx, &sluicepb.PutLimitRequest{Name: "tokens", RatePerKey: rate}))(t)
	}
	allow(60_000)
	limit := "tokens"
	queues := sluicepb.NewQueuesClient(client.Conn())
	must(queues.Put(ctx, &sluicepb.SetQueueRequest{Queue: "prompts", Limit: &limit}))(t)
	send(t, client, "prompts", "large", sluice.WithLimitKey("ann"), sluice.WithCost(2000))
	send(t, client, "prompts", "next", sluice.WithLimitKey("ann"))
	send(t, client, "prompts", "other", sluice.WithLimitKey("bob"))
	received := must(client.Receive(ctx, "prompts", sluice.ReceiveMax(10)))(t)
	equal(t, "messages", len(received), 2)
	large := received[0]
	equal(t, "payloads", string(large.Payload)+" "+string(received[1].Payload), "large other")
	extended := must(client.Extend(ctx, sluice.Extension{Receipt: large.Receipt, AddCost: 600}))(t)
	settled := must(client.Settle(ctx, sluice.Ack(large.Receipt).WithCost(400)))(t)
	check(t, errors.Join(extended[0], settled[0]))
	key := "ann"
	found := must(limits.Get(ctx, &sluicepb.GetLimitRequest{Name: "tokens", Key: &key}))(t)
	spent := found.Keys[0].GetSpent()
	if spent < 2800 || spent > 3000 || found.Keys[0].Waiting != 1 {
		t.Fatalf("what is spent: %v", found)
	}
	receiveNone(t, client, "prompts")
	// Other rules forgive the debt, and what is left is made up for within a millisecond.
	allow(1000)
	equal(t, "payload", string(receiveOne(t, client, "prompts").Payload), "next")
}

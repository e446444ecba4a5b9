package sluice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
	"github.com/sluice/sluice-go/sluicetest"
)

// scenarios has a test for each scenario that all SDKs have to show.
var scenarios = map[string]func(t *testing.T, client *sluice.Client){
	"send_and_receive":  sendAndReceive,
	"send_many":         sendMany,
	"send_options":      sendOptions,
	"send_again":        sendAgain,
	"work_acks":         workAcks,
	"work_renews":       workRenews,
	"work_retries":      workRetries,
	"work_dead":         workDead,
	"work_refused":      workRefused,
	"work_stops":        workStops,
	"request_and_reply": requestAndReply,
	"results":           results,
	"flow":              flow,
	"schedule":          schedule,
	"budget":            budget,
	"lock":              lock,
	"lock_is_renewed":   lockIsRenewed,
	"documents":         documents,
	"transaction":       transaction,
	"errors":            errorsOfTheAPI,
	"restart":           restart,
	"failover":          failover,
}

func TestConformance(t *testing.T) {
	listed := listedScenarios(t)
	for _, scenario := range listed {
		if scenarios[scenario.Name] == nil {
			t.Errorf("scenario %q has no test: %s", scenario.Name, scenario.What)
		}
	}
	for name := range scenarios {
		if !slices.ContainsFunc(listed, func(one listedScenario) bool { return one.Name == name }) {
			t.Errorf("the list has no scenario %q", name)
		}
	}
	server := sluicetest.Start(t)
	conformance(t, 1, listed, func(t *testing.T, opts ...sluice.Option) *sluice.Client {
		return server.Client(t, opts...)
	})
	cluster := startCluster(t)
	conformance(t, 3, listed, cluster.client)
}

// conformance runs the scenarios for so many nodes, each with a client in a namespace of its own.
func conformance(
	t *testing.T, nodes int, listed []listedScenario,
	connect func(t *testing.T, opts ...sluice.Option) *sluice.Client,
) {
	admin := sluicepb.NewNamespacesClient(connect(t).Conn())
	for _, scenario := range listed {
		if !slices.Contains(scenario.Nodes, nodes) {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d", scenario.Name, nodes), func(t *testing.T) {
			t.Parallel()
			make := &sluicepb.PutNamespaceRequest{Namespace: scenario.Name}
			must(admin.Put(within(t, 20*time.Second), make))(t)
			scenarios[scenario.Name](t, connect(t, sluice.WithNamespace(scenario.Name)))
		})
	}
}

type listedScenario struct {
	Name, What string
	// Nodes are the numbers of nodes on which it is shown.
	Nodes []int
}

func listedScenarios(t *testing.T) []listedScenario {
	content, err := os.ReadFile("../conformance/scenarios.json")
	var list []listedScenario
	if err == nil {
		err = json.Unmarshal(content, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// within is the context of a test that ends in time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// receiveOne receives a message within some seconds.
func receiveOne(
	t *testing.T, client *sluice.Client, queue string, opts ...sluice.ReceiveOption,
) *sluice.Delivery {
	t.Helper()
	opts = append([]sluice.ReceiveOption{sluice.ReceiveWait(5 * time.Second)}, opts...)
	messages := must(client.Receive(within(t, 10*time.Second), queue, opts...))(t)
	if len(messages) != 1 {
		t.Fatalf("%d messages of %s came", len(messages), queue)
	}
	return messages[0]
}

// receiveNone fails if a message comes at once.
func receiveNone(t *testing.T, client *sluice.Client, queue string) {
	t.Helper()
	messages := must(client.Receive(within(t, 10*time.Second), queue))(t)
	if len(messages) != 0 {
		t.Fatalf("a message of %s came: %q", queue, messages[0].Payload)
	}
}

// work runs a worker until the test ends or the function that is returned is called, which waits for its end.
func work(t *testing.T, worker *sluice.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, d time.Duration, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(d); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within %s: %s", d, what)
		}
	}
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"sluice.torture/history"
)

// sender sends a message to the server at each call.
func sender(t *testing.T, server *httptest.Server) func() answer {
	t.Cleanup(server.Close)
	recorder, err := newRecorder(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(0, 1, []string{server.URL}, nil, recorder)
	return func() answer {
		headers := map[string]string{"Idempotency-Key": "k"}
		return client.call("POST", "/v1/queues/q/messages", map[string]any{"payload": "x"}, headers)
	}
}

func TestTheOutcomeFollowsFromTheAnswer(t *testing.T) {
	for _, told := range []struct {
		status  int
		body    string
		outcome string
	}{
		{201, `{"id":"i"}`, history.OK},
		{507, `{"error":{"code":"disk_full"}}`, history.Refused},
		{503, `{"error":{"code":"not_leader"}}`, history.Refused},
		{503, `{"error":{"code":"outcome_unknown"}}`, history.Unknown},
		{409, `{"error":{"code":"lease_lost"}}`, history.Lost},
		{500, `{"error":{"code":"internal"}}`, history.Unknown},
		{500, `oops`, history.Unknown},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
			writer.WriteHeader(told.status)
			io.WriteString(writer, told.body)
		}))
		if answer := sender(t, server)(); answer.Outcome != told.outcome {
			t.Errorf("%d %s: %s", told.status, told.body, answer.Outcome)
		}
	}
}

// A connection that was used before is where Go's client would repeat a request by itself.
func TestACallThatNobodyAnswersIsMadeOnce(t *testing.T) {
	var calls atomic.Int64
	send := sender(t, httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		io.Copy(io.Discard, request.Body)
		if calls.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(writer, "{}")
	})))
	if answer := send(); answer.Outcome != history.OK {
		t.Error(answer.Outcome, answer.Code)
	}
	if answer := send(); answer.Outcome != history.Unknown || calls.Load() != 2 {
		t.Errorf("%s after %d calls", answer.Outcome, calls.Load())
	}
}

func TestACallToNobodyHasNoEffect(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	send := sender(t, gone)
	gone.Close()
	if answer := send(); answer.Outcome != history.Refused {
		t.Error(answer.Outcome, answer.Code)
	}
}

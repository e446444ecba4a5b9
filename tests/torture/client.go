package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"time"

	"sluice.torture/history"
)

// answerWithin is how long a client waits for an answer before it gives up.
const answerWithin = 1500 * time.Millisecond

// client makes one call at a time, to the node that has answered last.
type client struct {
	number   int
	random   *rand.Rand
	servers  []string // URLs
	at       int
	http     http.Client
	recorder *recorder
}

// newClient is for servers of one cluster, or for one server; without secrets it speaks clear text.
func newClient(number int, seed int64, servers []string, secrets *tls.Config, recorder *recorder) *client {
	transport := &http.Transport{DisableCompression: true, TLSClientConfig: secrets}
	return &client{
		number:   number,
		random:   rand.New(rand.NewSource(seed)),
		servers:  servers,
		at:       number % len(servers),
		http:     http.Client{Timeout: answerWithin, Transport: transport},
		recorder: recorder,
	}
}

// once hides how a body could be read again: else Go's client would repeat requests by itself.
type once struct{ io.Reader }

// answer is what a client knows after a call.
type answer struct {
	history.Record        // Client, Call, Return, Outcome and Code
	body           []byte // of an answer that is no error
}

// call makes a call, and pauses if it failed. `headers` may be nil, and `body` too.
func (client *client) call(method, path string, body any, headers map[string]string) answer {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			panic(err) // texts and numbers
		}
		content = once{bytes.NewReader(text)}
	}
	request, err := http.NewRequest(method, client.servers[client.at]+path, content)
	if err != nil {
		panic(err) // paths are the program's own
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	var answer answer
	answer.Client, answer.Call = client.number, client.recorder.now()
	response, err := client.http.Do(request)
	if err == nil {
		answer.body, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	answer.Return = client.recorder.now()
	if err != nil {
		answer.Outcome, answer.Code = unanswered(err)
	} else {
		answer.Outcome, answer.Code = outcome(response.StatusCode, answer.body)
	}
	if answer.Outcome == history.Refused || answer.Outcome == history.Unknown {
		client.at = (client.at + 1) % len(client.servers)
		client.pause(again)
	}
	return answer
}

// insist repeats a call that may be repeated until it succeeds.
func (client *client) insist(method, path string, body any) (answer, error) {
	for since := time.Now(); ; {
		answer := client.call(method, path, body, nil)
		if answer.Outcome == history.OK {
			return answer, nil
		}
		if time.Since(since) > calmMax {
			return answer, fmt.Errorf("%s %s fails for %v: %s", method, path, calmMax, answer.Code)
		}
	}
}

// unanswered is the outcome of a call without a whole answer.
func unanswered(err error) (outcome, code string) {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return history.Refused, "unreachable"
	}
	return history.Unknown, "unanswered"
}

// outcome is that of a call with this answer.
func outcome(status int, body []byte) (outcome, code string) {
	if status < 300 {
		return history.OK, ""
	}
	var refusal struct{ Error struct{ Code string } }
	if err := json.Unmarshal(body, &refusal); err != nil {
		return history.Unknown, "unexpected: " + string(body)
	}
	return ofCode(refusal.Error.Code), named(refusal.Error.Code)
}

// outcomes of the errors that a run may bring.
var outcomes = map[string]string{
	"disk_full": history.Refused, "overloaded": history.Refused, "shutting_down": history.Refused,
	"no_leader": history.Refused, "not_leader": history.Refused,
	"outcome_unknown": history.Unknown, "journal_failed": history.Unknown,
	"lease_lost": history.Lost, "message_not_found": history.Lost,
	"version_mismatch": history.Denied, "document_not_found": history.Denied, "lock_held": history.Denied,
}

func ofCode(code string) string {
	if outcome, expected := outcomes[code]; expected {
		return outcome
	}
	return history.Unknown
}

func named(code string) string {
	if _, expected := outcomes[code]; expected {
		return code
	}
	return "unexpected: " + code
}

// pause waits for twice this time at most.
func (client *client) pause(mean time.Duration) {
	if mean == 0 {
		return
	}
	time.Sleep(time.Duration(client.random.Int63n(int64(2 * mean))))
}

// Package sluicetest helps to test programs that use Sluice: it starts a server in memory for a test, and
// records what a client sends.
//
//	server := sluicetest.Start(t)
//	recorder := sluicetest.NewRecorder()
//	client := server.Client(t, recorder.Option())
//	...
//	server.Advance(t, 24*time.Hour)
//	recorder.AssertSent(t, "emails", sluicetest.Payload("hello"))
package sluicetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
)

// startWithin is the time that a server has to be ready.
const startWithin = 30 * time.Second

// advice is what to do where there is no binary.
const advice = "set SLUICE_BIN to the path of sluice, or put sluice into PATH"

// callWithin is the time that a move of the server's time may take.
const callWithin = 60 * time.Second

// Server is a server that runs for a test.
type Server struct {
	// URL is its address, as sluice.WithServers takes it.
	URL string
	// time is what moves its time.
	time sluicepb.TestingClient
}

// Option changes how a server is started.
type Option func(*settings)

type settings struct{ args []string }

// Args adds arguments of `sluice serve`, such as "--limits-payload=4MiB".
func Args(args ...string) Option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// Start starts a server for a test, which keeps everything in memory, on a free port, and ends it when the
// test ends; if the test is killed it ends by itself. Its binary is that of SLUICE_BIN, or `sluice` in PATH.
// Without one the test is skipped, or fails if CI is set.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &settings{args: []string{"serve", "--test"}}
	for _, opt := range opts {
		opt(s)
	}
	command := exec.Command(Binary(t), s.args...)
	command.Env = environment()
	server := &Server{URL: run(t, command)}
	server.time = sluicepb.NewTestingClient(server.Client(t).Conn())
	return server
}

// Advance moves the time of the server forward, and returns it. Whatever is due by then is done when it
// returns: delays, leases and times to live are over, and schedules have fired for each time in between.
func (s *Server) Advance(t testing.TB, by time.Duration) time.Time {
	t.Helper()
	if by < 0 {
		t.Fatalf("sluicetest: the time moves forward only, not by %v", by)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	ms := uint64(by.Milliseconds())
	return timeOf(t, func() (*sluicepb.TestTime, error) {
		return s.time.Advance(ctx, &sluicepb.AdvanceTestTimeRequest{AdvanceMs: &ms})
	})
}

// Now is the time of the server.
func (s *Server) Now(t testing.TB) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	return timeOf(t, func() (*sluicepb.TestTime, error) {
		return s.time.GetTime(ctx, &sluicepb.GetTestTimeRequest{})
	})
}

func timeOf(t testing.TB, ask func() (*sluicepb.TestTime, error)) time.Time {
	t.Helper()
	now, err := ask()
	if err != nil {
		t.Fatalf("sluicetest: %v", err)
	}
	return time.UnixMilli(int64(now.GetNowMs()))
}

// Client makes a client of the server, which is closed when the test ends. Environment variables do not
// count.
func (s *Server) Client(t testing.TB, opts ...sluice.Option) *sluice.Client {
	t.Helper()
	own := []sluice.Option{sluice.WithoutEnvironment(), sluice.WithServers(s.URL)}
	client, err := sluice.New(append(own, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Binary is the path of the server's binary. Without one the test is skipped, or fails if CI is set.
func Binary(t testing.TB) string {
	t.Helper()
	name := os.Getenv("SLUICE_BIN")
	if name == "" {
		name = "sluice"
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "" || os.Getenv("SLUICE_BIN") != "":
		t.Fatalf("sluicetest: there is no server: %s: %v", advice, err)
	default:
		t.Skipf("sluicetest: there is no server: %s: %v", advice, err)
	}
	return ""
}

// run starts the command and returns the URL that its first line tells.
func run(t testing.TB, command *exec.Cmd) string {
	t.Helper()
	var log bytes.Buffer
	command.Stderr = &log
	out, err := command.StdoutPipe()
	if err == nil {
		// A server for tests ends when the other side of its stdin is closed, as it is when the test is killed.
		_, err = command.StdinPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	// What it has in memory ends with it.
	watchdog := time.AfterFunc(startWithin, func() { _ = command.Process.Kill() })
	line, _ := bufio.NewReader(out).ReadBytes('\n')
	watchdog.Stop()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	})
	var ready struct{ URL string }
	if err := json.Unmarshal(line, &ready); err != nil || ready.URL == "" {
		_ = command.Process.Kill()
		_ = command.Wait()
		t.Fatalf("sluicetest: the server has not started: %s", log.String())
	}
	return ready.URL
}

// environment is that of the test without what would change the server.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "SLUICE_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// Package sluicetest helps to test programs that use Sluice: it starts a server in memory for a test, and
// records what a client sends.
//
//	server := sluicetest.Start(t)
//	recorder := sluicetest.NewRecorder()
//	client := server.Client(t, recorder.Option())
//	...
//	recorder.AssertSent(t, "emails", sluicetest.Payload("hello"))
package sluicetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
)

// startWithin is the time that a server has to be ready.
const startWithin = 30 * time.Second

// Server is a server that runs for a test.
type Server struct {
	// URL is its address, as sluice.WithServers takes it.
	URL string
}

// Option changes how a server is started.
type Option func(*settings)

type settings struct{ args []string }

// Args adds arguments of `sluice serve`, such as "--limits-payload=4MiB".
func Args(args ...string) Option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// Start starts a server that keeps everything in memory, on a free port, and ends it when the test ends. Its
// binary is that of SLUICE_BIN, or `sluice` in PATH. Without one the test is skipped, or fails if CI is set.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &settings{args: []string{"serve", "--json", "--memory", "--listen=127.0.0.1:0", "--log-level=warn"}}
	for _, opt := range opts {
		opt(s)
	}
	command := exec.Command(Binary(t), s.args...)
	command.Env = environment()
	return &Server{URL: run(t, command)}
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
		t.Fatalf("sluicetest: there is no server: %v", err)
	default:
		t.Skipf("sluicetest: there is no server: set SLUICE_BIN, or put sluice into PATH: %v", err)
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

package sluice_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicetest"
)

// cluster is what `sluice cluster dev --json` tells.
type cluster struct {
	CA, Cert, Key string
	Nodes         []struct {
		Pid int
		URL string
	}
}

func startCluster(t *testing.T) *cluster {
	dir := t.TempDir() + "/cluster"
	command := exec.Command(sluicetest.Binary(t), "cluster", "dev", "--json", "--dir", dir, "--port", "0")
	out := must(command.StdoutPipe())(t)
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	line := must(bufio.NewReader(out).ReadBytes('\n'))(t)
	made := &cluster{}
	check(t, json.Unmarshal(line, made))
	return made
}

// client is a client of all nodes, of which it asks one or another first.
func (c *cluster) client(t *testing.T, opts ...sluice.Option) *sluice.Client {
	var urls []string
	for i := range c.Nodes {
		urls = append(urls, c.Nodes[(i+len(t.Name()))%len(c.Nodes)].URL)
	}
	read := func(path string) []byte { return must(os.ReadFile(path))(t) }
	own := []sluice.Option{sluice.WithoutEnvironment(), sluice.WithServers(urls...),
		sluice.WithCA(read(c.CA)), sluice.WithCertificate(read(c.Cert), read(c.Key))}
	client := must(sluice.New(append(own, opts...)...))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// kill ends the node at an address at once.
func (c *cluster) kill(t *testing.T, address string) {
	for _, node := range c.Nodes {
		if strings.HasSuffix(node.URL, "//"+address) {
			check(t, must(os.FindProcess(node.Pid))(t).Kill())
			return
		}
	}
	t.Fatalf("no node is at %s", address)
}

func failover(t *testing.T, _ *sluice.Client) {
	cluster := startCluster(t)
	client := cluster.client(t)
	goesOn(t, client, func() { cluster.kill(t, client.Server()) })
}

func restart(t *testing.T, _ *sluice.Client) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	check(t, listener.Close())
	data := t.TempDir()
	server := serve(t, address, data)
	client := must(sluice.New(sluice.WithoutEnvironment(), sluice.WithServers(address)))(t)
	t.Cleanup(func() { _ = client.Close() })
	goesOn(t, client, func() {
		check(t, server.Process.Kill())
		_ = server.Wait()
		server = serve(t, address, data)
	})
}

// serve runs a server that keeps its data in a folder until the test ends, and waits until it is ready.
func serve(t *testing.T, address, data string) *exec.Cmd {
	command := exec.Command(sluicetest.Binary(t), "serve", "--json", "--listen", address, "--data-dir", data)
	out := must(command.StdoutPipe())(t)
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	must(bufio.NewReader(out).ReadBytes('\n'))(t)
	return command
}

// goesOn sends, works and holds a lock, while a function kills the server that is asked.
func goesOn(t *testing.T, client *sluice.Client, kill func()) {
	ctx := within(t, time.Minute)
	var seen tally
	stop := work(t, client.NewWorker("jobs", func(_ context.Context, job *sluice.Job) error {
		time.Sleep(10 * time.Millisecond)
		seen.add(job.Payload)
		return nil
	}, sluice.WorkerConcurrency(4), sluice.WorkerLease(5*time.Second)))

	const messages = 200
	err := client.WithLock(ctx, "leader", func(ctx context.Context, first *sluice.Held) error {
		for i := range messages {
			if i == messages/3 {
				eventually(t, "messages come", 20*time.Second, func() bool { return seen.distinct() > 10 })
				kill()
			}
			if _, err := client.Send(ctx, "jobs", fmt.Append(nil, i)); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		}
		eventually(t, "all messages are handled", 40*time.Second, func() bool {
			return seen.distinct() == messages
		})
		return context.Cause(ctx)
	}, sluice.LockTTL(12*time.Second))
	check(t, err)
	must(client.Lock(ctx, "leader", sluice.LockWait(0)))(t)
	eventually(t, "all are acked", 20*time.Second, func() bool { return isEmpty(queueOf(t, client, "jobs")) })
	stop()
}

package sluice_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

func (c *cluster) client(t *testing.T) *sluice.Client {
	var urls []string
	for _, node := range c.Nodes {
		urls = append(urls, node.URL)
	}
	read := func(path string) []byte { return must(os.ReadFile(path))(t) }
	client := must(sluice.New(sluice.WithoutEnvironment(), sluice.WithServers(urls...),
		sluice.WithCA(read(c.CA)), sluice.WithCertificate(read(c.Cert), read(c.Key))))(t)
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
				cluster.kill(t, client.Server())
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

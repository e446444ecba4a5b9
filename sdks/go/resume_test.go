package sluice_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicetest"
)

// proxy passes connections on to a server, and can cut them.
type proxy struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []net.Conn
}

func startProxy(t *testing.T, server *sluicetest.Server) *proxy {
	p := &proxy{
		listener: must(net.Listen("tcp", "127.0.0.1:0"))(t), to: strings.TrimPrefix(server.URL, "http://"),
	}
	go p.run()
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.cut()
	})
	return p
}

func (p *proxy) run() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = from.Close()
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, from, to)
		p.mu.Unlock()
		go func() { _, _ = io.Copy(from, to) }()
		go func() { _, _ = io.Copy(to, from) }()
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}

func TestAWorkerKeepsItsMessagesThroughABrokenConnection(t *testing.T) {
	server := sluicetest.Start(t)
	direct := server.Client(t)
	proxy := startProxy(t, server)
	begun := make(chan struct{}, 2)
	var handled, lost atomic.Int64
	through := clientOf(t, []string{proxy.listener.Addr().String()})
	work(t, through.NewWorker("q", func(ctx context.Context, _ *sluice.Job) error {
		handled.Add(1)
		begun <- struct{}{}
		select {
		case <-ctx.Done():
			lost.Add(1)
		case <-time.After(3 * time.Second):
		}
		return nil
	}, sluice.WorkerLease(2*time.Second), sluice.WorkerConcurrency(2)))
	send(t, direct, "q", "1")
	send(t, direct, "q", "2")
	<-begun
	<-begun
	proxy.cut()
	eventually(t, "both are acked", 20*time.Second, func() bool {
		return queueOf(t, direct, "q").Totals.Acked == 2
	})
	equal(t, "handled", handled.Load(), 2)
	equal(t, "lost", lost.Load(), 0)
	equal(t, "expired", queueOf(t, direct, "q").Totals.Expired, 0)
	send(t, direct, "q", "3")
	<-begun
}

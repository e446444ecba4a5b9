package main

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// echo is the address of a server that sends back what it gets, and counts it.
func echo(t *testing.T) (string, *atomic.Int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	got := &atomic.Int64{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go io.Copy(connection, io.TeeReader(connection, counter{got}))
		}
	}()
	return listener.Addr().String(), got
}

// echoing is a proxy before such a server.
func echoing(t *testing.T) (*proxy, *atomic.Int64) {
	proxy, err := newProxy(func(net.Conn) int { return clients })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.listener.Close() })
	address, got := echo(t)
	proxy.leadTo(address)
	return proxy, got
}

type counter struct{ bytes *atomic.Int64 }

func (counter counter) Write(bytes []byte) (int, error) {
	counter.bytes.Add(int64(len(bytes)))
	return len(bytes), nil
}

func dial(t *testing.T, proxy *proxy) net.Conn {
	connection, err := net.Dial("tcp", proxy.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// ask sends a byte and waits for it; the error of the read.
func ask(connection net.Conn, within time.Duration) error {
	connection.Write([]byte{1})
	connection.SetReadDeadline(time.Now().Add(within))
	_, err := io.ReadFull(connection, make([]byte, 1))
	return err
}

func TestGoodWeatherCarriesBothWays(t *testing.T) {
	proxy, _ := echoing(t)
	if err := ask(dial(t, proxy), 10*time.Second); err != nil {
		t.Error(err)
	}
}

func TestDelayHoldsEachPieceUp(t *testing.T) {
	proxy, _ := echoing(t)
	proxy.set(clients, weather{delay: 40 * time.Millisecond})
	since := time.Now()
	if err := ask(dial(t, proxy), 10*time.Second); err != nil || time.Since(since) < 40*time.Millisecond {
		t.Errorf("answered after %v: %v", time.Since(since), err)
	}
}

func TestLostAnswersHaveReachedTheServer(t *testing.T) {
	proxy, got := echoing(t)
	connection := dial(t, proxy)
	proxy.set(clients, weather{losesAnswers: true})
	if err := ask(connection, 300*time.Millisecond); err == nil || got.Load() != 1 {
		t.Errorf("the server got %d bytes; %v", got.Load(), err)
	}
	proxy.set(clients, weather{})
	if err := ask(connection, 10*time.Second); err == nil {
		t.Error("a connection that has lost bytes goes on")
	}
}

func TestLostRequestsReachNobody(t *testing.T) {
	proxy, got := echoing(t)
	proxy.set(clients, weather{losesRequests: true})
	if err := ask(dial(t, proxy), 300*time.Millisecond); err == nil || got.Load() != 0 {
		t.Errorf("the server got %d bytes; %v", got.Load(), err)
	}
}

func TestACutEndsConnectionsAndMakesNone(t *testing.T) {
	proxy, _ := echoing(t)
	before := dial(t, proxy)
	if err := ask(before, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	proxy.set(clients, weather{cut: true})
	for _, connection := range []net.Conn{before, dial(t, proxy)} {
		if err := ask(connection, 10*time.Second); err == nil {
			t.Error("a byte came through")
		}
	}
}

func TestWhoIsHeardByNobodyHearsTheOthers(t *testing.T) {
	network, err := newNetwork(3)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]*atomic.Int64, 3)
	for node := range got {
		var address string
		address, got[node] = echo(t)
		network.leadTo(node, address)
	}
	network.around(0, weather{losesRequests: true}, weather{losesAnswers: true})
	// This process is one node after the other.
	from := func(node, to int) net.Conn {
		for other := range network.processes {
			network.runs(other, 0)
		}
		if node != clients {
			network.runs(node, os.Getpid())
		}
		return dial(t, network.proxies[to])
	}
	if err := ask(from(0, 1), 300*time.Millisecond); err == nil || got[1].Load() != 0 {
		t.Errorf("node 1 got %d bytes of node 0; %v", got[1].Load(), err)
	}
	if err := ask(from(1, 0), 300*time.Millisecond); err == nil || got[0].Load() != 1 {
		t.Errorf("node 0 got %d bytes of node 1; %v", got[0].Load(), err)
	}
	if err := ask(from(1, 2), 10*time.Second); err != nil {
		t.Errorf("nodes 1 and 2: %v", err)
	}
	if err := ask(from(clients, 0), 10*time.Second); err != nil {
		t.Errorf("clients of node 0: %v", err)
	}
	network.calm()
	if err := ask(from(0, 1), 10*time.Second); err != nil {
		t.Errorf("after the storm: %v", err)
	}
}

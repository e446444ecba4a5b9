package main

import (
	"math/rand"
	"net"
	"sync"
	"time"
)

// weather is how a proxy treats the connections through it; the zero value carries everything at once.
type weather struct {
	cut           bool          // there are no connections
	delay         time.Duration // of each piece of bytes, on average
	losesRequests bool          // bytes of clients vanish, while the connection stays
	losesAnswers  bool
}

// proxy stands before one server. Its address stays the same, while the server may come back at another.
type proxy struct {
	listener net.Listener
	origin   func(net.Conn) int // the one who has made a connection
	mutex    sync.Mutex
	target   string
	now      map[int]weather // by origin; zero where there is none
	links    map[*link]bool
}

// link is a connection of a client and the one to the server that belongs to it.
type link struct {
	origin         int
	client, server net.Conn
}

func (link *link) close() {
	for _, side := range []net.Conn{link.client, link.server} {
		side.(*net.TCPConn).SetLinger(0) // a reset, as of a process that has died
		side.Close()
	}
}

func newProxy(origin func(net.Conn) int) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	proxy := &proxy{listener: listener, origin: origin, now: map[int]weather{}, links: map[*link]bool{}}
	go proxy.serve()
	return proxy, nil
}

func (proxy *proxy) address() string { return proxy.listener.Addr().String() }

// leadTo names the address of the server from now on.
func (proxy *proxy) leadTo(target string) {
	proxy.mutex.Lock()
	defer proxy.mutex.Unlock()
	proxy.target = target
}

// set changes the weather of an origin. Connections that have lost bytes cannot go on, and end.
func (proxy *proxy) set(origin int, next weather) {
	proxy.mutex.Lock()
	defer proxy.mutex.Unlock()
	if next.cut || proxy.now[origin].losesRequests || proxy.now[origin].losesAnswers {
		for link := range proxy.links {
			if link.origin == origin {
				link.close()
			}
		}
	}
	proxy.now[origin] = next
}

func (proxy *proxy) serve() {
	for {
		client, err := proxy.listener.Accept()
		if err != nil {
			return
		}
		go proxy.connect(client)
	}
}

func (proxy *proxy) connect(client net.Conn) {
	origin := proxy.origin(client)
	proxy.mutex.Lock()
	target, cut := proxy.target, proxy.now[origin].cut
	proxy.mutex.Unlock()
	server, err := net.DialTimeout("tcp", target, time.Second)
	if err != nil || cut {
		client.Close()
		return
	}
	link := &link{origin, client, server}
	proxy.mutex.Lock()
	proxy.links[link] = true
	proxy.mutex.Unlock()
	var both sync.WaitGroup
	both.Add(2)
	go proxy.carry(&both, link, client, server)
	go proxy.carry(&both, link, server, client)
	both.Wait()
	proxy.mutex.Lock()
	delete(proxy.links, link)
	proxy.mutex.Unlock()
}

// carry moves bytes one way until the connection ends, and ends it for both.
func (proxy *proxy) carry(done *sync.WaitGroup, link *link, from, to net.Conn) {
	defer done.Done()
	defer link.close()
	piece := make([]byte, 64<<10)
	for {
		length, err := from.Read(piece)
		if err != nil {
			return
		}
		proxy.mutex.Lock()
		now := proxy.now[link.origin]
		proxy.mutex.Unlock()
		if now.delay > 0 {
			time.Sleep(now.delay/2 + time.Duration(rand.Int63n(int64(now.delay))))
		}
		if now.losesRequests && from == link.client || now.losesAnswers && from == link.server {
			continue
		}
		if _, err := to.Write(piece[:length]); err != nil {
			return
		}
	}
}

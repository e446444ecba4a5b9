package main

import (
	"math/rand"
	"net"
	"sync/atomic"
	"time"
)

// clients are the origin of every connection that no node has made.
const clients = -1

// network is all ways to the nodes of a run: a proxy stands before each, at the address that clients and the
// other nodes know. It treats connections by who has made them.
type network struct {
	proxies   []*proxy
	processes []atomic.Int64 // of the nodes
}

func newNetwork(nodes int) (*network, error) {
	network := &network{processes: make([]atomic.Int64, nodes)}
	for range nodes {
		proxy, err := newProxy(network.origin)
		if err != nil {
			return nil, err
		}
		network.proxies = append(network.proxies, proxy)
	}
	return network, nil
}

// origin is the node that has made a connection, or clients.
func (network *network) origin(connection net.Conn) int {
	socket := otherEnd(connection)
	for node := range network.processes {
		if holds(network.processes[node].Load(), socket) {
			return node
		}
	}
	return clients
}

// others returns all nodes but one.
func (network *network) others(node int) []int {
	var others []int
	for other := range network.proxies {
		if other != node {
			others = append(others, other)
		}
	}
	return others
}

// runs names the process of a node from now on.
func (network *network) runs(node, process int) { network.processes[node].Store(int64(process)) }

// leadTo names the address of a node from now on.
func (network *network) leadTo(node int, address string) { network.proxies[node].leadTo(address) }

// calm ends all bad weather.
func (network *network) calm() {
	for to, proxy := range network.proxies {
		proxy.set(clients, weather{})
		for _, from := range network.others(to) {
			proxy.set(from, weather{})
		}
	}
}

// storm is bad weather on some of the ways to a node.
type storm struct {
	name string
	blow func(*network, *rand.Rand, int)
}

// fair is no storm.
var fair = storm{"", func(*network, *rand.Rand, int) {}}

// onClients is bad weather between clients and a node.
func onClients(name string, weather weather) storm {
	return storm{name, func(network *network, _ *rand.Rand, node int) { network.proxies[node].set(clients, weather) }}
}

// ofClients are the storms between clients and nodes.
var ofClients = []storm{
	fair,
	onClients("slow network", weather{delay: 30 * time.Millisecond}),
	onClients("very slow network", weather{delay: 400 * time.Millisecond}),
	onClients("cut network", weather{cut: true}),
	onClients("network that loses requests", weather{losesRequests: true}),
	onClients("network that loses answers", weather{losesAnswers: true}),
	onClients("slow network that loses answers", weather{delay: 30 * time.Millisecond, losesAnswers: true}),
}

// ofPeers are the storms between nodes. Who has connected decides which bytes are requests to a proxy.
var ofPeers = []storm{
	{"slow peers", func(network *network, _ *rand.Rand, node int) {
		network.around(node, weather{delay: 30 * time.Millisecond}, weather{delay: 30 * time.Millisecond})
	}},
	{"node that is cut off", func(network *network, _ *rand.Rand, node int) {
		network.around(node, weather{cut: true}, weather{cut: true})
	}},
	{"node that is heard by nobody", func(network *network, _ *rand.Rand, node int) {
		network.around(node, weather{losesRequests: true}, weather{losesAnswers: true})
	}},
	{"node that hears nobody", func(network *network, _ *rand.Rand, node int) {
		network.around(node, weather{losesAnswers: true}, weather{losesRequests: true})
	}},
	{"two nodes that are cut off from each other", func(network *network, random *rand.Rand, node int) {
		others := network.others(node)
		other := others[random.Intn(len(others))]
		network.proxies[other].set(node, weather{cut: true})
		network.proxies[node].set(other, weather{cut: true})
	}},
}

// around sets the weather of the connections that a node makes to others, and of those that they make to it.
func (network *network) around(node int, made, taken weather) {
	for _, other := range network.others(node) {
		network.proxies[other].set(node, made)
		network.proxies[node].set(other, taken)
	}
}

package main

import (
	"math/rand"
	"time"
)

// network is all ways to the nodes of a run: of clients to each, and of each node to each other.
type network struct {
	clients []*proxy
	between [][]*proxy // by the node that connects, and the one that it connects to; itself: nil
}

func newNetwork(nodes int) (*network, error) {
	network := &network{clients: make([]*proxy, nodes), between: make([][]*proxy, nodes)}
	var err error
	for to := range nodes {
		network.between[to] = make([]*proxy, nodes)
		if network.clients[to], err = newProxy(); err != nil {
			return nil, err
		}
	}
	for from := range nodes {
		for _, to := range network.others(from) {
			if network.between[from][to], err = newProxy(); err != nil {
				return nil, err
			}
		}
	}
	return network, nil
}

// others returns all nodes but one.
func (network *network) others(node int) []int {
	var others []int
	for other := range network.clients {
		if other != node {
			others = append(others, other)
		}
	}
	return others
}

// leadTo names the address of a node from now on.
func (network *network) leadTo(node int, address string) {
	network.clients[node].leadTo(address)
	for _, other := range network.others(node) {
		network.between[other][node].leadTo(address)
	}
}

// calm ends all bad weather.
func (network *network) calm() {
	for from, proxy := range network.clients {
		proxy.set(weather{})
		for _, to := range network.others(from) {
			network.between[from][to].set(weather{})
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
	return storm{name, func(network *network, _ *rand.Rand, node int) { network.clients[node].set(weather) }}
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
		network.between[node][other].set(weather{cut: true})
		network.between[other][node].set(weather{cut: true})
	}},
}

// around sets the weather of the connections that a node makes to others, and of those that they make to it.
func (network *network) around(node int, made, taken weather) {
	for _, other := range network.others(node) {
		network.between[node][other].set(made)
		network.between[other][node].set(taken)
	}
}

package main

import (
	"crypto/tls"
	"fmt"
	"os/exec"
	"strings"
)

// cluster is what makes several nodes one cluster: certificates, and addresses by which they reach each
// other. Clients of a cluster authenticate as well.
type cluster struct {
	authority *authority
	clients   *tls.Config
}

// newCluster makes the certificates of this many nodes, and of clients, in a folder.
func newCluster(folder string, nodes int) (*cluster, error) {
	authority, err := newAuthority(folder)
	if err != nil {
		return nil, err
	}
	for index := range nodes {
		identity := fmt.Sprintf("sluice://node/%016x/%d", 0x70727475, index+1)
		if err := authority.issue(nodeName(index), identity); err != nil {
			return nil, err
		}
	}
	if err := authority.issue("client", "sluice://client/torture", "sluice://ns/*?perm=admin"); err != nil {
		return nil, err
	}
	clients, err := authority.config("client")
	return &cluster{authority, clients}, err
}

// found lets nodes that have never run become members: all begin with what the first has made alone.
func (cluster *cluster) found(nodes []*node) error {
	first := nodes[0]
	if err := first.start(); err != nil {
		return err
	}
	if err := first.stop(); err != nil {
		return err
	}
	for _, node := range nodes {
		if node != first {
			if err := exec.Command("cp", "-a", first.disk.path+"/.", node.disk.path).Run(); err != nil {
				return err
			}
		}
		node.command = append(node.command, cluster.arguments(node.network, node.index)...)
	}
	return nil
}

// arguments are those of a server that is this node. It reaches the others by the network.
func (cluster *cluster) arguments(network *network, index int) []string {
	members := make([]string, len(network.clients))
	for to := range members {
		way := network.between[index][to]
		if to == index {
			way = network.clients[to]
		}
		members[to] = fmt.Sprintf("%d=%s", to+1, way.address())
	}
	name := nodeName(index)
	return []string{
		"--tls-cert", cluster.authority.path(name + ".pem"), "--tls-key", cluster.authority.path(name + ".key"),
		"--tls-client-ca", cluster.authority.path("ca.pem"), "--cluster-members", strings.Join(members, ","),
	}
}

func nodeName(index int) string { return fmt.Sprintf("node-%d", index+1) }

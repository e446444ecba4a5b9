package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// wholeWithin bounds the time until every node is connected, has all data and votes.
const wholeWithin = 30 * time.Second

// The files that an administrator needs: the CA's certificate, the own one, and its key.
const caFile, certFile, keyFile = "ca.pem", "admin.pem", "admin.key"

// past are the problems that a cluster tells for a while although they are over: a connection remembers how
// clocks differed when it began, and a node for a minute that it could not pass a request on.
var past = regexp.MustCompile(`^the clock of node \d+ was |could not pass requests on`)

// cluster makes several nodes one cluster and changes its members, by the commands of an operator. Clients of
// a cluster authenticate as its administrator.
type cluster struct {
	program string
	folder  string // with the administrator's files
	network *network
	clients *tls.Config
}

// found makes one cluster of nodes that have never run.
func (cluster *cluster) found(nodes []*node) error {
	first := nodes[0]
	made := cluster.command(append([]string{"init"}, first.settings...))
	if told, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster init: %w: %s", err, told)
	}
	if err := first.start(); err != nil {
		return err
	}
	if err := cluster.keep(filepath.Join(first.disk.path, "data-tls")); err != nil {
		return err
	}
	for _, node := range nodes[1:] {
		if err := cluster.join(node, nodes[:1], "add"); err != nil {
			return err
		}
	}
	return cluster.whole(nodes)
}

// keep copies the administrator's files out of a folder that may get lost, and reads them.
func (cluster *cluster) keep(from string) error {
	for _, name := range []string{caFile, certFile, keyFile} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(cluster.path(name), text, 0o600); err != nil {
			return err
		}
	}
	pair, err := tls.LoadX509KeyPair(cluster.path(certFile), cluster.path(keyFile))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(cluster.path(caFile))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	cluster.clients = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return err
}

func (cluster *cluster) path(name string) string { return filepath.Join(cluster.folder, name) }

// command is `sluice cluster` with these arguments.
func (cluster *cluster) command(arguments []string) *exec.Cmd {
	command := exec.Command(cluster.program, append([]string{"cluster"}, arguments...)...)
	command.Env = []string{"HOME=" + cluster.folder}
	return command
}

// ask runs `sluice cluster` with these arguments against whichever of the nodes answers.
func (cluster *cluster) ask(nodes []*node, into any, arguments ...string) error {
	var servers []string
	for _, node := range nodes {
		servers = append(servers, node.url())
	}
	command := cluster.command(append(arguments, "--json"))
	command.Env = append(command.Env, "SLUICE_SERVER="+strings.Join(servers, ","),
		"SLUICE_CA="+cluster.path(caFile),
		"SLUICE_CERT="+cluster.path(certFile), "SLUICE_CERT_KEY="+cluster.path(keyFile))
	told, err := command.Output()
	if err != nil {
		var failure *exec.ExitError
		errors.As(err, &failure)
		return fmt.Errorf("cluster %s: %w: %s", strings.Join(arguments, " "), err, failure.Stderr)
	}
	return json.Unmarshal(told, into)
}

// insist asks again in good weather if nobody follows in the bad.
func (cluster *cluster) insist(nodes []*node, into any, arguments ...string) error {
	err := cluster.ask(nodes, into, arguments...)
	for since := time.Now(); err != nil && time.Since(since) < calmMax; time.Sleep(100 * time.Millisecond) {
		cluster.network.calm()
		err = cluster.ask(nodes, into, arguments...)
	}
	return err
}

// join lets a node without data become one of the cluster, with the token that others give for these
// arguments of `sluice cluster`.
func (cluster *cluster) join(node *node, others []*node, arguments ...string) error {
	var made struct{ Token string }
	if err := cluster.insist(others, &made, arguments...); err != nil {
		return err
	}
	flags := []string{"--join", others[0].url(), "--join-token", made.Token}
	if node.start(flags...) == nil {
		return nil
	}
	cluster.network.calm() // the next try goes on with what bad weather has left of this one
	return node.start(flags...)
}

// status is what `sluice cluster status` tells.
type status struct {
	Problems []string
	Nodes    []struct{ Number uint64 }
	Shards   []struct {
		Leader    uint64
		Followers []struct{ Votes, Heard bool }
	}
}

// whole waits until these nodes are the cluster's, and it has no problem.
func (cluster *cluster) whole(nodes []*node) error {
	var numbers []uint64
	for _, node := range nodes {
		number, err := node.number()
		if err != nil {
			return err
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for since := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var now status
		err := cluster.ask(nodes, &now, "status")
		if err == nil && now.isWhole(numbers) {
			return nil
		}
		if time.Since(since) > wholeWithin {
			return fmt.Errorf("the cluster of %v is not whole after %v: %+v, %v", numbers, wholeWithin, now, err)
		}
	}
}

// leader is the node that leads the first shard.
func (cluster *cluster) leader(nodes []*node) (*node, error) {
	var now status
	if err := cluster.insist(nodes, &now, "status"); err != nil {
		return nil, err
	}
	for _, node := range nodes {
		number, err := node.number()
		if err != nil {
			return nil, err
		}
		if len(now.Shards) > 0 && now.Shards[0].Leader == number {
			return node, nil
		}
	}
	return nodes[0], nil // nobody leads: any node will do
}

// isWhole says whether all shards have a leader, and all these nodes vote, and no others.
func (now status) isWhole(numbers []uint64) bool {
	var found []uint64
	for _, node := range now.Nodes {
		found = append(found, node.Number)
	}
	slices.Sort(found)
	for _, shard := range now.Shards {
		voters := 0
		for _, follower := range shard.Followers {
			if follower.Votes && follower.Heard {
				voters++
			}
		}
		if shard.Leader == 0 || voters != len(numbers)-1 || len(shard.Followers) != voters {
			return false
		}
	}
	isPresent := func(problem string) bool { return !past.MatchString(problem) }
	return len(now.Shards) > 0 && slices.Equal(found, numbers) && !slices.ContainsFunc(now.Problems, isPresent)
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// startWithin bounds a start, whatever there is to recover.
	startWithin = 30 * time.Second
	// stopWithin bounds a stop by SIGTERM, in which running requests finish.
	stopWithin = 40 * time.Second
	// failed is the exit code of a server whose journal has failed, full that of one without room to start,
	// removed that of one whose node is no longer of the cluster, unavailable that of a command that nobody can
	// follow for now.
	failed, full, removed, unavailable = 8, 6, 9, 7
)

// node is one server: its folder, its disk, its clock, its process, and the ways to it.
type node struct {
	index    int
	name     string
	program  string
	settings []string // of the server
	folder   string
	disk     disk
	clock    *clock
	network  *network
	cluster  *cluster // nil: it is alone, in clear text
	process  *exec.Cmd
	exited   chan struct{} // closed when the process has ended
}

// newNode makes the folder of a node under `within`, with a disk of its own if it may be mounted.
func newNode(index int, program, within string, network *network, cluster *cluster, mounts bool) (*node, error) {
	name := fmt.Sprintf("node-%d", index+1)
	folder := filepath.Join(within, name)
	disk := disk{filepath.Join(folder, "disk")}
	if err := os.MkdirAll(disk.path, 0o755); err != nil {
		return nil, err
	}
	if mounts {
		if err := disk.mount(); err != nil {
			return nil, fmt.Errorf("mount %s: %w", disk.path, err)
		}
	}
	clock := &clock{library: faketime(), path: filepath.Join(folder, "clock")}
	if err := clock.shift(0); err != nil {
		return nil, err
	}
	settings := []string{
		"--listen", "127.0.0.1:0", "--data-dir", filepath.Join(disk.path, "data"),
		"--durability", "always", "--reserve", "8MiB", "--low-water", "8MiB",
	}
	if cluster != nil {
		settings = append(settings, "--cluster-address", network.proxies[index].address())
	}
	return &node{
		index: index, name: name, program: program, settings: settings, folder: folder, disk: disk, clock: clock,
		network: network, cluster: cluster,
	}, nil
}

// url is where clients and other nodes reach it.
func (node *node) url() string {
	scheme := "https://"
	if node.cluster == nil {
		scheme = "http://"
	}
	return scheme + node.network.proxies[node.index].address()
}

// number is that of the node in its cluster, which it keeps as long as its data.
func (node *node) number() (uint64, error) {
	text, err := os.ReadFile(filepath.Join(node.disk.path, "data", "node"))
	if err != nil {
		return 0, err
	}
	var file struct{ Joined struct{ Node uint64 } }
	err = json.Unmarshal(text, &file)
	return file.Joined.Node, err
}

// start runs the server, with these flags too, until it says that it is ready.
func (node *node) start(flags ...string) error {
	log, err := os.OpenFile(filepath.Join(node.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	node.process = exec.Command(node.program, slices.Concat([]string{"serve", "--json"}, node.settings, flags)...)
	node.process.Dir = node.folder
	node.process.Env = append(node.clock.environment(), "HOME="+node.folder)
	node.process.Stderr = log
	node.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no server outlives the run
	out, err := node.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.process.Start(); err != nil {
		return err
	}
	node.network.runs(node.index, node.process.Process.Pid)
	started := time.AfterFunc(startWithin, func() { node.process.Process.Kill() })
	defer started.Stop()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	node.exited = make(chan struct{})
	go node.wait()
	if err != nil {
		<-node.exited
		return fmt.Errorf("%s did not start (%v): see %s", node.name, node.process.ProcessState, log.Name())
	}
	return node.reach(line)
}

func (node *node) wait() {
	node.process.Wait()
	close(node.exited)
}

// reach leads all ways to the address in the line with which a server says that it is ready.
func (node *node) reach(line []byte) error {
	var ready struct{ URL string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return err
	}
	address, err := url.Parse(ready.URL)
	if err != nil {
		return err
	}
	node.network.leadTo(node.index, address.Host)
	return nil
}

// signal is for a process that runs.
func (node *node) signal(signal syscall.Signal) error { return node.process.Process.Signal(signal) }

// kill ends the process at once.
func (node *node) kill() {
	node.signal(syscall.SIGKILL)
	<-node.exited
}

// stop ends the process in the way that an operator does.
func (node *node) stop() error {
	node.signal(syscall.SIGTERM)
	return node.ends(0, stopWithin)
}

// ends waits for the end of the process, which has to be by this exit code.
func (node *node) ends(code int, within time.Duration) error {
	select {
	case <-node.exited:
	case <-time.After(within):
		return fmt.Errorf("%s still runs after %v", node.name, within)
	}
	if found := node.process.ProcessState.ExitCode(); found != code {
		return fmt.Errorf("%s ended with %v, not with exit code %d", node.name, node.process.ProcessState, code)
	}
	return nil
}

// check says whether the process has ended by itself.
func (node *node) check() error {
	select {
	case <-node.exited:
		return errors.New(node.name + " has ended by itself: " + node.process.ProcessState.String())
	default:
		return nil
	}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const (
	diskBytes = 256 << 20
	// attachWithin bounds the time that strace takes to hold all threads of a server.
	attachWithin = 10 * time.Second
)

// untraced is the line in the status of a thread that nobody traces.
var untraced = regexp.MustCompile(`(?m)^TracerPid:\t0$`)

// disk is a folder for the data of one server, and a file system of its own if that was mounted.
type disk struct{ path string }

// mount makes the folder a file system in memory, so that it can be full. Only for a process that has a
// namespace of mounts for itself: nobody else sees it, and it is gone with the process.
func (disk disk) mount() error {
	return syscall.Mount("tmpfs", disk.path, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes))
}

func (disk disk) ballast() string { return filepath.Join(disk.path, "ballast") }

// fill takes the last free byte.
func (disk disk) fill() error {
	file, err := os.Create(disk.ballast())
	if err != nil {
		return err
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 4096, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	if err.(*os.PathError).Err != syscall.ENOSPC {
		return err
	}
	return nil
}

// free gives back what fill took.
func (disk disk) free() error { return os.Remove(disk.ballast()) }

// wipe loses all that is there.
func (disk disk) wipe() error {
	entries, err := os.ReadDir(disk.path)
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(disk.path, entry.Name())); err != nil {
			return err
		}
	}
	return err
}

// tracer lets system calls of a process fail, or hang, while it is attached.
type tracer struct{ strace *exec.Cmd }

// inject lets strace change system calls of a process: `fdatasync:error=EIO`.
func inject(process int, fault string) (tracer, error) {
	strace := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject="+fault, "-p", fmt.Sprint(process))
	if err := strace.Start(); err != nil {
		return tracer{}, err
	}
	tracer := tracer{strace}
	for since := time.Now(); !isTraced(process); time.Sleep(5 * time.Millisecond) {
		if time.Since(since) > attachWithin {
			tracer.end()
			return tracer, fmt.Errorf("strace does not attach to process %d", process)
		}
	}
	return tracer, nil
}

// end lets the process go on as it would without.
func (tracer tracer) end() {
	tracer.strace.Process.Signal(os.Interrupt)
	tracer.strace.Wait()
}

// isTraced says whether each thread of a process is, or is gone already.
func isTraced(process int) bool {
	statuses, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", process))
	for _, status := range statuses {
		text, err := os.ReadFile(status)
		if err == nil && untraced.Match(text) {
			return false
		}
	}
	return true
}

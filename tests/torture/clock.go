package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// shiftMax is how far a wall clock may be from the right time: two such clocks differ by less than the
	// time for which idempotency keys are remembered, since the time of a server jumps when it starts.
	shiftMax = 2 * time.Minute
	// shiftSeen is how long a process may take to see that its clock was shifted.
	shiftSeen = 2 * time.Second
)

// clock is the wall clock of one server, which libfaketime shifts; its monotonic clock stays as it is.
type clock struct {
	library string // empty: the clock cannot be shifted
	path    string // file with the shift
	shifted time.Duration
}

// faketime is the path of the library; empty: it is not installed.
func faketime() string {
	for _, pattern := range []string{"/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime"} {
		if found, _ := filepath.Glob(pattern + "/libfaketimeMT.so.1"); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// environment lets a process that is started with it see this clock.
func (clock *clock) environment() []string {
	if clock.library == "" {
		return nil
	}
	return []string{
		"LD_PRELOAD=" + clock.library, "FAKETIME_TIMESTAMP_FILE=" + clock.path, "FAKETIME_CACHE_DURATION=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", // the newer and the older name
	}
}

// shift sets the clock this far from the right time.
func (clock *clock) shift(by time.Duration) error {
	next := clock.path + ".new"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int(by.Seconds())), 0o644); err != nil {
		return err
	}
	clock.shifted = by
	return os.Rename(next, clock.path)
}

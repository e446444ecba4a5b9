package main

import (
	"bufio"
	"encoding/json"
	"os"
	"sync"
	"time"

	"sluice.torture/history"
)

// recorder writes the history, and keeps what a run has to know of it while it goes on.
type recorder struct {
	begin  time.Time
	mutex  sync.Mutex
	file   *os.File
	lines  *bufio.Writer
	counts map[string]int // records of each kind and outcome
	sentAt int64          // when the latest send that succeeded was called
}

func newRecorder(path string) (*recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &recorder{
		begin: time.Now(), file: file, lines: bufio.NewWriter(file), counts: map[string]int{},
	}, nil
}

// now is the time since the begin of the run, in nanoseconds, as all times of a history.
func (recorder *recorder) now() int64 { return time.Since(recorder.begin).Nanoseconds() }

func (recorder *recorder) add(record history.Record) {
	line, err := json.Marshal(record)
	if err != nil {
		panic(err) // all fields are texts and numbers
	}
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	recorder.lines.Write(append(line, '\n')) // an error is kept until close
	recorder.counts[record.Kind+" "+record.Outcome]++
	if record.Kind == history.Send && record.Outcome == history.OK {
		recorder.sentAt = max(recorder.sentAt, record.Call)
	}
}

// hasSentSince says whether a send that was called at this time or later has succeeded.
func (recorder *recorder) hasSentSince(time int64) bool {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	return recorder.sentAt >= time
}

func (recorder *recorder) close() error {
	if err := recorder.lines.Flush(); err != nil {
		return err
	}
	return recorder.file.Close()
}

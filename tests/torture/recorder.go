package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.torture/coordination"
	"sluice.torture/history"
)

// The histories of a run: of messages, and of locks, documents and transactions.
const messagesFile, coordinationFile = "history.jsonl", "coordination.jsonl"

// recorder writes the histories, and keeps what a run has to know of them while it goes on.
type recorder struct {
	begin    time.Time
	mutex    sync.Mutex
	messages *lines // nil: nobody sends any
	calls    *lines
	counts   map[string]int   // records of each kind and outcome
	latest   map[string]int64 // when the latest one of each proof was called
}

// Proofs that servers work: calls that have succeeded.
const aSend, aWrite = "send", "write of a document or a lock"

// newRecorder makes the histories in a folder: that of messages only if there are any.
func newRecorder(folder string, messages bool) (*recorder, error) {
	recorder := &recorder{begin: time.Now(), counts: map[string]int{}, latest: map[string]int64{}}
	var err error
	if recorder.calls, err = newLines(filepath.Join(folder, coordinationFile)); err != nil {
		return nil, err
	}
	if messages {
		recorder.messages, err = newLines(filepath.Join(folder, messagesFile))
	}
	return recorder, err
}

// now is the time since the begin of the run, in nanoseconds, as all times of a history.
func (recorder *recorder) now() int64 { return time.Since(recorder.begin).Nanoseconds() }

// add records what concerns a message; a fault concerns all.
func (recorder *recorder) add(record history.Record) {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	if recorder.messages != nil {
		recorder.messages.write(record)
	}
	recorder.counts[record.Kind+" "+record.Outcome]++
	if record.Kind == history.Send && record.Outcome == history.OK {
		recorder.latest[aSend] = max(recorder.latest[aSend], record.Call)
	}
	if record.Kind == history.Fault {
		recorder.calls.write(coordination.Record{
			Kind: coordination.Fault, Call: record.Call, Return: record.Return, Code: record.Code, Note: record.Note,
		})
	}
}

// tell records what concerns locks and documents.
func (recorder *recorder) tell(record coordination.Record) {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	recorder.calls.write(record)
	if record.Kind != coordination.Called {
		return
	}
	name := record.Operations[0].Kind
	if record.Transaction {
		name = "transaction"
	}
	recorder.counts[strings.TrimSpace(name+" "+record.Outcome+" "+record.Code)]++
	if record.Outcome == coordination.OK && name != coordination.Get && name != coordination.Show {
		recorder.latest[aWrite] = max(recorder.latest[aWrite], record.Call)
	}
}

// proves says whether one of each of these that was called at this time or later has succeeded.
func (recorder *recorder) proves(proofs []string, since int64) bool {
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	isOlder := func(proof string) bool { return recorder.latest[proof] < since }
	return !slices.ContainsFunc(proofs, isOlder)
}

func (recorder *recorder) close() error {
	if recorder.messages == nil {
		return recorder.calls.close()
	}
	return errors.Join(recorder.messages.close(), recorder.calls.close())
}

// lines is a file of JSON lines.
type lines struct {
	file   *os.File
	buffer *bufio.Writer
}

func newLines(path string) (*lines, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &lines{file, bufio.NewWriter(file)}, nil
}

func (lines *lines) write(record any) {
	line, err := json.Marshal(record)
	if err != nil {
		panic(err) // all fields are texts and numbers
	}
	lines.buffer.Write(append(line, '\n')) // an error is kept until close
}

func (lines *lines) close() error {
	return errors.Join(lines.buffer.Flush(), lines.file.Close())
}

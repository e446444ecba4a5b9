package sluice

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// noTools is the exit code of scripts/generate without a compiler of protobuf.
const noTools = 3

func TestTheGeneratedCodeIsOfTheseProtoFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the compiler")
	}
	folder := t.TempDir()
	output, err := exec.Command("scripts/generate", folder).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == noTools && os.Getenv("CI") == "" {
		t.Skipf("%s", output)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	made, err := filepath.Glob(filepath.Join(folder, "*.go"))
	committed, _ := filepath.Glob("sluicepb/*.go")
	if err != nil || len(made) == 0 || len(made) != len(committed) {
		t.Fatalf("%d files are made, %d committed: %v", len(made), len(committed), err)
	}
	for _, path := range made {
		want, _ := os.ReadFile(path)
		got, err := os.ReadFile(filepath.Join("sluicepb", filepath.Base(path)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what scripts/generate makes: run it", filepath.Base(path))
		}
	}
}

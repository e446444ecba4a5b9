package sluice_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicetest"
)

func TestReadme(t *testing.T) {
	client := sluicetest.Start(t).Client(t)
	examples := []struct {
		name string
		run  func(context.Context, *sluice.Client) error
	}{
		{"send", readmeSend}, {"request", readmeRequest}, {"flow", readmeFlow}, {"schedule", readmeSchedule},
		{"lock", readmeLock}, {"documents", readmeDocuments}, {"transaction", readmeTransaction},
		{"attachments", readmeAttachments},
		{"open transaction", readmeOpenTransaction}, {"transactional worker", readmeTransactionalWorker},
		{"errors", readmeErrors}, {"stubs", readmeStubs},
		{"guide: publish, consume", guideWork}, {"guide: request", guideRequest}, {"guide: key-value", guideDocuments},
	}
	for _, example := range examples {
		t.Run(example.name, func(t *testing.T) { check(t, example.run(within(t, 20*time.Second), client)) })
	}
	check(t, readmeOutcomes(t.Context(), &sluice.Job{}))
}

// TestReadmeHasTheCodeThatIsTested sees that each piece of Go in the README and the guide is in a file that is compiled.
func TestReadmeHasTheCodeThatIsTested(t *testing.T) {
	readme := read(t, "README.md") + read(t, "../../docs/guides/nats.md")
	var compiled strings.Builder
	files := append(must(filepath.Glob("examples/*/*.go"))(t), "readme_examples_test.go", "guide_examples_test.go")
	for _, file := range files {
		compiled.WriteString(unindented(read(t, file)))
	}
	pieces := strings.Split(readme, "```go\n")[1:]
	if len(pieces) < 10 {
		t.Fatalf("the README has %d pieces of Go", len(pieces))
	}
	for _, piece := range pieces {
		piece, _, _ = strings.Cut(piece, "```")
		if !strings.Contains(compiled.String(), unindented(piece)) {
			t.Errorf("no file that is compiled has this piece of the README:\n%s", piece)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(must(os.ReadFile(path))(t))
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

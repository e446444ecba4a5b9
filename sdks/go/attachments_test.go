package sluice_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicetest"
)

// withDocument is a client of a server that has one document.
func withDocument(t *testing.T) (*sluice.Client, sluice.Attachments) {
	client := sluicetest.Start(t).Client(t)
	must(client.Documents().Put(t.Context(), "d", []byte("{}")))(t)
	return client, client.Attachments()
}

func large() []byte {
	made := make([]byte, 3<<20+17)
	for i := range made {
		made[i] = byte(i * 31)
	}
	return made
}

func downloaded(t *testing.T, all sluice.Attachments, name string, opts ...sluice.DownloadOption) []byte {
	t.Helper()
	_, content, err := all.Download(t.Context(), "d", name, opts...)
	check(t, err)
	read := must(io.ReadAll(content))(t)
	check(t, content.Close())
	return read
}

func TestAttachmentsGoUpAndComeDownAsTheyAre(t *testing.T) {
	_, all := withDocument(t)
	sent := large()
	digits := fmt.Sprintf("%x", sha256.Sum256(sent))
	// A reader that gives half of what is asked for is as good as any.
	version := must(all.Upload(t.Context(), "d", "a.bin", iotest.HalfReader(bytes.NewReader(sent)),
		sluice.DocContentType("x/y"), sluice.UploadSHA256(digits)))(t)
	equal(t, "version", version.Version, 1)
	equal(t, "same", bytes.Equal(downloaded(t, all, "a.bin"), sent), true)
	part := downloaded(t, all, "a.bin", sluice.DownloadFrom(1_000_000), sluice.DownloadAtMost(100_000))
	equal(t, "same part", bytes.Equal(part, sent[1_000_000:1_100_000]), true)
	about, content, err := all.Download(t.Context(), "d", "a.bin")
	check(t, err)
	check(t, content.Close())
	if _, err := content.Read(make([]byte, 1)); err == nil {
		t.Error("a download that is closed can be read")
	}
	equal(t, "about", fmt.Sprint(about.Name, about.Bytes, about.SHA256, about.ContentType, about.ETag),
		fmt.Sprint("a.bin", len(sent), digits, "x/y", version.ETag))
	must(all.Upload(t.Context(), "d", "empty", strings.NewReader("")))(t)
	equal(t, "empty", len(downloaded(t, all, "empty")), 0)
	var names []string
	for one, err := range all.List(t.Context(), "d") {
		check(t, err)
		names = append(names, one.Name)
	}
	equal(t, "names", fmt.Sprint(names), "[a.bin empty]")
}

func TestAnAttachmentThatIsRefusedLeavesNothing(t *testing.T) {
	_, all := withDocument(t)
	ctx := t.Context()
	first := must(all.Upload(ctx, "d", "a", strings.NewReader("1"), sluice.IfAbsent()))(t)
	_, err := all.Upload(ctx, "d", "a", strings.NewReader("2"), sluice.IfAbsent())
	if !errors.Is(err, sluice.ErrVersionMismatch) {
		t.Errorf("it is there: %v", err)
	}
	_, err = all.Upload(ctx, "d", "b", strings.NewReader("2"), sluice.UploadSHA256(strings.Repeat("0", 64)))
	var e *sluice.Error
	if !errors.As(err, &e) || e.Code != sluice.CodeDigestMismatch {
		t.Errorf("a wrong digest: %v", err)
	}
	broken := errors.New("the disk is on fire")
	_, err = all.Upload(ctx, "d", "c", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
	_, err = all.Upload(ctx, "nowhere", "a", bytes.NewReader(large()))
	if !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("there is no such document: %v", err)
	}
	must(all.Upload(ctx, "d", "a", strings.NewReader("2"), sluice.IfETag(first.ETag)))(t)
	_, _, err = all.Download(ctx, "d", "a", sluice.DownloadIfETag(first.ETag))
	if !errors.Is(err, sluice.ErrVersionMismatch) {
		t.Errorf("another version: %v", err)
	}
	names := 0
	for one, err := range all.List(ctx, "d") {
		check(t, err)
		equal(t, "name", one.Name, "a")
		names++
	}
	equal(t, "names", names, 1)
	check(t, all.Delete(ctx, "d", "a"))
	if _, _, err := all.Download(ctx, "d", "a"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("what is deleted: %v", err)
	}
}

func TestASourceThatIsCutIsNoAttachment(t *testing.T) {
	_, all := withDocument(t)
	for _, cut := range []error{io.ErrUnexpectedEOF, fmt.Errorf("unzipping: %w", io.EOF)} {
		source := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cut))
		if _, err := all.Upload(t.Context(), "d", "cut", source); !errors.Is(err, cut) {
			t.Errorf("a source that is cut with %v: %v", cut, err)
		}
	}
	// The end may come with the last bytes.
	must(all.Upload(t.Context(), "d", "whole", iotest.DataErrReader(strings.NewReader("whole"))))(t)
	equal(t, "content", string(downloaded(t, all, "whole")), "whole")
	for one, err := range all.List(t.Context(), "d") {
		check(t, err)
		equal(t, "name", one.Name, "whole")
	}
}

func TestATransferEndsWithItsContext(t *testing.T) {
	_, all := withDocument(t)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := all.Upload(ctx, "d", "a", reader)
		ended <- err
	}()
	must(writer.Write(make([]byte, 1<<20)))(t)
	cancel()
	// It notices when it goes on.
	go func() { _, _ = writer.Write(large()) }()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("an upload that is given up: %v", err)
	}
}

package sluice

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/sluice/sluice-go/sluicepb"
)

// uploadPiece is the number of bytes of one message of an upload; the server takes 1 MiB at most.
const uploadPiece = 256 << 10

// Attachments are named bytes of documents, of up to 5 GiB, which go and come as streams.
type Attachments struct{ client *Client }

// Attachments returns the calls on attachments of documents.
func (c *Client) Attachments() Attachments { return Attachments{c} }

// Attachment is what is known of an attachment.
type Attachment struct {
	// Version is 1, and one more each time the attachment is replaced.
	Version
	Name  string
	Bytes uint64
	// SHA256 is that of its bytes, in hexadecimal digits.
	SHA256 string
	// ContentType is its media type; empty: none was given.
	ContentType string
}

// UploadSHA256 is the SHA-256 of all bytes of an upload, in hexadecimal digits: it is refused if others have
// come.
func UploadSHA256(digits string) DocumentOption {
	return func(w *write) { w.sha256 = &digits }
}

// Upload makes an attachment of all that the reader gives; its document has to be there. Conditions are about
// the attachment, and [DocContentType] is its media type. Nothing is left of an upload that fails, and it is
// not repeated: the reader is used up then.
func (a Attachments) Upload(
	ctx context.Context, key, name string, content io.Reader, opts ...DocumentOption,
) (*Version, error) {
	w := newWrite(opts)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := a.client.servers.asked()
	stream, err := sluicepb.NewAttachmentsClient(asked.conn).Upload(ctx)
	if err != nil {
		return nil, a.failed(ctx, asked, err)
	}
	err = stream.Send(&sluicepb.UploadAttachmentRequest{
		Namespace: a.client.options.namespace, Key: key, Name: &name, ContentType: given(w.contentType),
		Sha256: w.sha256, IfVersion: w.ifVersion, IfEtag: w.ifETag, IfExists: w.ifExists, IfAbsent: w.ifAbsent,
		Token: w.token,
	})
	if err == nil {
		err = sendPieces(stream.Send, content)
	}
	// With io.EOF the stream has ended, and its answer tells why.
	if err != nil && !errors.Is(err, errStreamEnded) {
		return nil, err
	}
	out, err := stream.CloseAndRecv()
	if err != nil {
		return nil, a.failed(ctx, asked, err)
	}
	return versionOf(out, nil)
}

// errStreamEnded says that the server has ended the stream.
var errStreamEnded = errors.New("sluice: the stream has ended")

// sendPieces sends all that a reader gives.
func sendPieces(send func(*sluicepb.UploadAttachmentRequest) error, content io.Reader) error {
	for {
		// A message is written by gRPC later on: each has bytes of its own.
		piece := make([]byte, uploadPiece)
		n, err := fill(content, piece)
		if n > 0 && send(&sluicepb.UploadAttachmentRequest{Content: piece[:n]}) != nil {
			return errStreamEnded
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill reads until the piece is full, or to the error of the reader: [io.EOF] at its end, and no other error for
// it, since [io.ErrUnexpectedEOF] of a reader says that a part is missing.
func fill(content io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var more int
		more, err = content.Read(piece[n:])
		n += more
	}
	return n, err
}

// failed is the error of a stream, after which another server may be asked.
func (a Attachments) failed(ctx context.Context, asked *server, err error) error {
	e := toError(ctx, err)
	a.client.servers.passOn(asked, e)
	return e
}

// DownloadOption says which bytes a download reads.
type DownloadOption func(*sluicepb.DownloadAttachmentRequest)

// DownloadFrom leaves so many bytes out at the beginning.
func DownloadFrom(offset uint64) DownloadOption {
	return func(in *sluicepb.DownloadAttachmentRequest) { in.Offset = &offset }
}

// DownloadAtMost reads so many bytes at most.
func DownloadAtMost(bytes uint64) DownloadOption {
	return func(in *sluicepb.DownloadAttachmentRequest) { in.Bytes = &bytes }
}

// DownloadIfETag reads only if the attachment has this ETag, as for a download that goes on.
func DownloadIfETag(etag string) DownloadOption {
	return func(in *sluicepb.DownloadAttachmentRequest) { in.IfEtag = &etag }
}

// Download returns an attachment, and a reader of its bytes, which are those of one version. It has to be
// closed, or read to its end.
func (a Attachments) Download(
	ctx context.Context, key, name string, opts ...DownloadOption,
) (*Attachment, io.ReadCloser, error) {
	in := &sluicepb.DownloadAttachmentRequest{Namespace: a.client.options.namespace, Key: key, Name: &name}
	for _, opt := range opts {
		opt(in)
	}
	ctx, cancel := context.WithCancel(ctx)
	asked := a.client.servers.asked()
	stream, err := sluicepb.NewAttachmentsClient(asked.conn).Download(ctx, in)
	if err != nil {
		cancel()
		return nil, nil, a.failed(ctx, asked, err)
	}
	first, err := stream.Recv()
	if err != nil {
		defer cancel()
		return nil, nil, a.failed(ctx, asked, err)
	}
	next := func() ([]byte, error) {
		piece, err := stream.Recv()
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, a.failed(ctx, asked, err)
		}
		return piece.Content, nil
	}
	return attachmentOf(first.Attachment), &download{left: first.Content, next: next, cancel: cancel}, nil
}

// download reads the bytes of an attachment, piece by piece.
type download struct {
	left   []byte
	next   func() ([]byte, error)
	cancel context.CancelFunc
	err    error
}

func (d *download) Read(p []byte) (int, error) {
	for len(d.left) == 0 && d.err == nil {
		if d.left, d.err = d.next(); d.err != nil {
			d.cancel()
		}
	}
	if len(d.left) == 0 {
		return 0, d.err
	}
	n := copy(p, d.left)
	d.left = d.left[n:]
	return n, nil
}

// Close ends the download.
func (d *download) Close() error {
	d.cancel()
	d.left = nil
	if d.err == nil {
		d.err = errors.New("sluice: the download is closed")
	}
	return nil
}

// List returns the attachments of a document, by name.
func (a Attachments) List(ctx context.Context, key string) iter.Seq2[*Attachment, error] {
	return pages(func(after string) ([]*Attachment, string, error) {
		in := &sluicepb.ListAttachmentsRequest{
			Namespace: a.client.options.namespace, Key: key, After: given(after),
		}
		out := &sluicepb.ListAttachmentsResponse{}
		err := a.client.call(ctx, sluicepb.Attachments_List_FullMethodName, in, out, repeatable, 0)
		var made []*Attachment
		for _, one := range out.Attachments {
			made = append(made, attachmentOf(one))
		}
		return made, out.Next, err
	})
}

// Delete deletes an attachment, under the conditions of the options.
func (a Attachments) Delete(ctx context.Context, key, name string, opts ...DocumentOption) error {
	w := newWrite(opts)
	in := &sluicepb.DeleteAttachmentRequest{
		Namespace: a.client.options.namespace, Key: key, Name: &name, IfVersion: w.ifVersion, IfEtag: w.ifETag,
		Token: w.token,
	}
	out := &sluicepb.DeleteAttachmentResponse{}
	return a.client.call(ctx, sluicepb.Attachments_Delete_FullMethodName, in, out, once, 0)
}

func attachmentOf(a *sluicepb.Attachment) *Attachment {
	return &Attachment{
		Version: Version{a.GetVersion(), a.GetEtag(), timeOf(a.GetChangedAtMs())}, Name: a.GetName(),
		Bytes: a.GetBytes(), SHA256: a.GetSha256(), ContentType: a.GetContentType(),
	}
}

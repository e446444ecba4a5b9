package sluice

import (
	"context"
	"iter"

	"github.com/sluice/sluice-go/sluicepb"
)

// Documents are the documents of a namespace.
type Documents struct{ client *Client }

// Documents returns the calls on documents.
func (c *Client) Documents() Documents { return Documents{c} }

// Put writes a document, under the conditions of the options. A repeat of the client itself is known to the
// server as long as nobody else has written; without a condition it may then write over that.
func (d Documents) Put(
	ctx context.Context, key string, content []byte, opts ...DocumentOption,
) (*Version, error) {
	w := newWrite(opts)
	in := &sluicepb.PutDocumentRequest{
		Namespace: d.client.options.namespace, Key: key, Content: notNil(content),
		ContentType: given(w.contentType), Attributes: w.attributes, TtlMs: millis(w.ttl), History: w.history,
		IfVersion: w.ifVersion, IfEtag: w.ifETag, IfExists: w.ifExists, IfAbsent: w.ifAbsent, Token: w.token,
		RequestId: given(newKey()),
	}
	out := &sluicepb.PutDocumentResponse{}
	err := d.client.call(ctx, sluicepb.Documents_Put_FullMethodName, in, out, repeatable, 0)
	return versionOf(out, err)
}

// Get returns a document with its content.
func (d Documents) Get(ctx context.Context, key string) (*Document, error) {
	return d.get(ctx, &sluicepb.GetDocumentRequest{Key: key})
}

// GetVersion returns a former version of a document that is kept, or the current one.
func (d Documents) GetVersion(ctx context.Context, key string, version uint64) (*Document, error) {
	return d.get(ctx, &sluicepb.GetDocumentRequest{Key: key, Version: &version})
}

func (d Documents) get(ctx context.Context, in *sluicepb.GetDocumentRequest) (*Document, error) {
	in.Namespace = d.client.options.namespace
	out := &sluicepb.Document{}
	if err := d.client.call(ctx, sluicepb.Documents_Get_FullMethodName, in, out, repeatable, 0); err != nil {
		return nil, err
	}
	return documentOf(out), nil
}

// Patch changes a document whose content is JSON: see [MergePatch], [JSONPatch] and [Increment].
func (d Documents) Patch(
	ctx context.Context, key string, patch Patch, opts ...DocumentOption,
) (*Version, error) {
	w := newWrite(opts)
	in := &sluicepb.PatchDocumentRequest{
		Namespace: d.client.options.namespace, Key: key, MergePatch: patch.merge, JsonPatch: patch.json,
		Increment: patch.increment, IfVersion: w.ifVersion, IfEtag: w.ifETag, Token: w.token,
		RequestId: given(newKey()),
	}
	out := &sluicepb.PutDocumentResponse{}
	err := d.client.call(ctx, sluicepb.Documents_Patch_FullMethodName, in, out, repeatable, 0)
	return versionOf(out, err)
}

// Increment adds to a number in a document; pointer is its JSON pointer (RFC 6901).
func (d Documents) Increment(
	ctx context.Context, key, pointer string, by int64, opts ...DocumentOption,
) (*Version, error) {
	return d.Patch(ctx, key, Increment(pointer, by), opts...)
}

// Delete deletes a document with its former versions.
func (d Documents) Delete(ctx context.Context, key string, opts ...DocumentOption) error {
	w := newWrite(opts)
	in := &sluicepb.DeleteDocumentRequest{
		Namespace: d.client.options.namespace, Key: key, IfVersion: w.ifVersion, IfEtag: w.ifETag,
		Token: w.token,
	}
	out := &sluicepb.DeleteDocumentResponse{}
	return d.client.call(ctx, sluicepb.Documents_Delete_FullMethodName, in, out, once, 0)
}

// List returns all documents whose keys begin with the prefix by key, without contents.
func (d Documents) List(ctx context.Context, prefix string) iter.Seq2[*Document, error] {
	return pages(func(after string) ([]*Document, string, error) {
		in := &sluicepb.ListDocumentsRequest{
			Namespace: d.client.options.namespace, Prefix: given(prefix), After: given(after),
		}
		out := &sluicepb.ListDocumentsResponse{}
		err := d.client.call(ctx, sluicepb.Documents_List_FullMethodName, in, out, repeatable, 0)
		return documentsOf(out.Documents), out.Next, err
	})
}

// Query is a query of documents that are JSON.
type Query struct {
	// Where is the filter, an object of JSON; empty: all documents that are JSON.
	Where string
	// Prefix restricts the keys.
	Prefix string
	// Sort are the values to sort by; none: by key.
	Sort []Sort
	// WithoutContent leaves contents out.
	WithoutContent bool
}

// Sort is a value to sort by.
type Sort struct {
	// Pointer is the JSON pointer of the value.
	Pointer    string
	Descending bool
}

// Query returns all documents that match, in the order of the query.
func (d Documents) Query(ctx context.Context, query Query) iter.Seq2[*Document, error] {
	return pages(func(after string) ([]*Document, string, error) {
		in := query.proto()
		in.Namespace, in.After = d.client.options.namespace, given(after)
		out := &sluicepb.QueryDocumentsResponse{}
		err := d.client.call(ctx, sluicepb.Documents_Query_FullMethodName, in, out, repeatable, 0)
		return documentsOf(out.Documents), out.Next, err
	})
}

func (q Query) proto() *sluicepb.QueryDocumentsRequest {
	content := !q.WithoutContent
	made := &sluicepb.QueryDocumentsRequest{
		Where: given(q.Where), Prefix: given(q.Prefix), Content: &content,
	}
	for _, sort := range q.Sort {
		made.Sort = append(made.Sort, &sluicepb.DocumentSort{
			Pointer: &sort.Pointer, Descending: given(sort.Descending),
		})
	}
	return made
}

// History returns the versions of a document that are kept, without contents, the current one first.
func (d Documents) History(ctx context.Context, key string) ([]*Document, error) {
	in := &sluicepb.DocumentHistoryRequest{Namespace: d.client.options.namespace, Key: key}
	out := &sluicepb.DocumentHistoryResponse{}
	err := d.client.call(ctx, sluicepb.Documents_History_FullMethodName, in, out, repeatable, 0)
	return documentsOf(out.Versions), err
}

// notNil makes an empty content one that is given.
func notNil(content []byte) []byte {
	if content == nil {
		return []byte{}
	}
	return content
}

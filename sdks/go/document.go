package sluice

import (
	"strconv"
	"time"

	"github.com/sluice/sluice-go/sluicepb"
)

// Version is a version of a document.
type Version struct {
	// Version is 1, and one more with each change, until the document is deleted.
	Version uint64
	// ETag is a number that no other version of any document ever has.
	ETag      string
	ChangedAt time.Time
}

// Document is a document as it was read. Lists and histories have no contents, content types and attributes.
type Document struct {
	Version
	Key         string
	Content     []byte
	ContentType string
	Attributes  map[string]string
	// ContentBytes is the length of the content.
	ContentBytes uint64
	// ExpiresAt is when the document is gone; zero: it stays.
	ExpiresAt time.Time
	// History is the number of former versions that are kept.
	History uint64
}

func versionOf(v *sluicepb.PutDocumentResponse, err error) (*Version, error) {
	if err != nil {
		return nil, err
	}
	return &Version{v.Version, v.Etag, timeOf(v.ChangedAtMs)}, nil
}

func documentOf(d *sluicepb.Document) *Document {
	return &Document{
		Version: Version{d.Version, d.Etag, timeOf(d.ChangedAtMs)}, Key: d.Key, Content: d.Content,
		ContentType: d.ContentType, Attributes: d.Attributes, ContentBytes: d.ContentBytes,
		ExpiresAt: timeOf(d.ExpiresAtMs), History: d.History,
	}
}

func documentsOf(all []*sluicepb.Document) []*Document {
	made := make([]*Document, 0, len(all))
	for _, one := range all {
		made = append(made, documentOf(one))
	}
	return made
}

// Patch is a change of a document whose content is JSON.
type Patch struct {
	merge, json *string
	increment   []*sluicepb.DocumentIncrement
}

// MergePatch is a merge patch (RFC 7396), as JSON.
func MergePatch(json string) Patch { return Patch{merge: &json} }

// JSONPatch is a JSON patch (RFC 6902), as JSON: all of its operations, or none.
func JSONPatch(json string) Patch { return Patch{json: &json} }

// Increment adds to the number at a JSON pointer (RFC 6901); one that is missing in its object counts as 0.
func Increment(pointer string, by int64) Patch {
	digits := strconv.FormatInt(by, 10)
	return Patch{increment: []*sluicepb.DocumentIncrement{{Pointer: &pointer, By: &digits}}}
}

// And adds the increments of another patch to those of this one.
func (p Patch) And(other Patch) Patch {
	p.increment = append(p.increment[:len(p.increment):len(p.increment)], other.increment...)
	return p
}

// DocumentOption is a condition of a write, or something that is kept with the document.
type DocumentOption func(*write)

// write is what the options of a write say.
type write struct {
	contentType        string
	attributes         map[string]string
	ttl                time.Duration
	history            *uint32
	ifVersion          *uint64
	ifETag, token      *string
	ifExists, ifAbsent *bool
	// sha256 is of uploads alone.
	sha256 *string
}

func newWrite(opts []DocumentOption) *write {
	made := &write{}
	for _, opt := range opts {
		opt(made)
	}
	return made
}

// IfVersion writes only if the document has this version.
func IfVersion(version uint64) DocumentOption {
	return func(w *write) { w.ifVersion = &version }
}

// IfETag writes only if the document has this ETag.
func IfETag(etag string) DocumentOption {
	return func(w *write) { w.ifETag = &etag }
}

// IfExists writes only if there is a document.
func IfExists() DocumentOption {
	return func(w *write) { w.ifExists = given(true) }
}

// IfAbsent writes only if there is no document.
func IfAbsent() DocumentOption {
	return func(w *write) { w.ifAbsent = given(true) }
}

// IfHeld writes only while the lock of the key, which has this token, is held.
func IfHeld(token string) DocumentOption {
	return func(w *write) { w.token = &token }
}

// DocContentType sets the media type of the content.
func DocContentType(mediaType string) DocumentOption {
	return func(w *write) { w.contentType = mediaType }
}

// DocAttribute keeps a name and a value with the content.
func DocAttribute(name, value string) DocumentOption {
	return func(w *write) {
		if w.attributes == nil {
			w.attributes = map[string]string{}
		}
		w.attributes[name] = value
	}
}

// DocTTL ends the document after this time.
func DocTTL(d time.Duration) DocumentOption {
	return func(w *write) { w.ttl = d }
}

// DocHistory keeps so many former versions.
func DocHistory(versions uint32) DocumentOption {
	return func(w *write) { w.history = &versions }
}

package coordination

// mayEnd says whether a document is gone or can be gone by its time, and lets it be so.
func (now *moment) mayEnd(document *document) bool {
	if document.present && (document.end == 0 || !now.isOver(document.end)) {
		return false
	}
	*document = documentGone
	return true
}

var documentGone document

// repeats says whether the document is what this very call has written before.
func (now *moment) repeats(operation *Operation) bool {
	document := &now.documents[operation.Keys[0]]
	if now.told && document.end != 0 &&
		(differs(document.etag, operation.Etag) || differs(document.version, operation.Version)) {
		return false // its time is over, and this is another one
	}
	return now.record.Repeatable && !now.record.Transaction && document.present &&
		document.last == now.record.Name
}

// differs says whether a number that is known is not the one that was told.
func differs(known, told uint64) bool { return known != 0 && known != told }

// admitsWrite says whether all conditions of a write hold. If the answer was told, it says whether there was
// a document; if not, one whose time may be over is there unless its absence is asked for.
func (now *moment) admitsWrite(operation *Operation) bool {
	document := &now.documents[operation.Keys[0]]
	if operation.Token != "" && !now.fences(operation) {
		return false
	}
	if now.repeats(operation) {
		return true
	}
	isNew := now.told && operation.Kind == Put && operation.Version == 1
	if (isNew || !now.told && operation.IfAbsent) && !now.mayEnd(document) {
		return false
	}
	if now.told && operation.Kind == Put && operation.Version > 1 && !document.present {
		return false
	}
	if !document.present {
		return operation.Kind == Put && operation.IfVersion == 0 && operation.IfEtag == 0 && !operation.IfExists
	}
	return !operation.IfAbsent && learn(&document.version, 0, operation.IfVersion) &&
		learn(&document.etag, document.after, operation.IfEtag)
}

// fences says whether the grant with the token of a write is held, and is of its key.
func (now *moment) fences(operation *Operation) bool {
	at := now.holding(operation.Token)
	return at >= 0 && now.grants[at].keys[operation.Keys[0]]
}

// writes changes a document for which all conditions hold.
func (now *moment) writes(operation *Operation, highest uint64) bool {
	document := &now.documents[operation.Keys[0]]
	if now.repeats(operation) {
		return learn(&document.etag, document.after, operation.Etag) &&
			learn(&document.version, 0, operation.Version)
	}
	if operation.Kind == Delete {
		*document = documentGone
		return true
	}
	next := *document
	next.present, next.last, next.after, next.etag = true, now.record.Name, now.highest, operation.Etag
	next.version = 0
	mayBeNew := document.end != 0 && now.record.Return >= document.end
	switch {
	case now.told:
		next.version = operation.Version
		if document.present && document.version != 0 && next.version != document.version+1 {
			return false
		}
	case !document.present:
		next.version = 1
	case document.version != 0 && !mayBeNew:
		next.version = document.version + 1
	}
	if operation.Kind == Put {
		next.by, next.n, next.end = now.record.Name, operation.N, 0
		if operation.TTLMs > 0 {
			next.end = now.lasts(operation)
		}
	} else {
		next.n += operation.N
	}
	*document = next
	return now.takes(operation.Etag, highest)
}

// shows says whether the document can be what a read has told.
func (now *moment) shows(operation *Operation) bool {
	document := &now.documents[operation.Keys[0]]
	return document.present && document.by == operation.By && document.n == operation.N &&
		learn(&document.etag, document.after, operation.Etag) && learn(&document.version, 0, operation.Version)
}

// mismatches says whether a condition on the document does not hold, which has the version that was told.
func (now *moment) mismatches(operation *Operation) bool {
	document := &now.documents[operation.Keys[0]]
	if operation.Version == 0 {
		asks := operation.IfVersion != 0 || operation.IfEtag != 0 || operation.IfExists
		return asks && now.mayEnd(document)
	}
	return document.present && !now.repeats(operation) &&
		learn(&document.version, 0, operation.Version) && (operation.IfAbsent ||
		operation.IfVersion != 0 && operation.IfVersion != document.version ||
		operation.IfEtag != 0 && operation.IfEtag != document.etag)
}

// The fields of a document that is written.

import { exactDuration, given, readDuration, readNumber, readPairs, readText, writePairs } from '../kit.js';

export const DOCUMENT_FIELDS = [
  { name: 'content', label: 'Content', type: 'textarea', rows: 14, wide: true },
  { name: 'content_type', label: 'Content type' },
  { name: 'ttl_ms', label: 'Ends after', hint: 'Such as 1h; empty: it stays. Counts anew from each write.' },
  { name: 'history', label: 'Former versions that are kept', type: 'number' },
  { name: 'attributes', label: 'Attributes', type: 'textarea', rows: 2, wide: true, hint: 'One "name: value" a line, or JSON.' },
];

export const readDocument = (values) => given({
  content: values.content,
  content_type: readText(values.content_type),
  ttl_ms: readDuration('ttl_ms', values.ttl_ms),
  history: readNumber('history', values.history),
  attributes: readPairs('attributes', values.attributes),
});

export const writeDocument = (document) => ({
  content: document.content ?? '',
  content_type: document.content_type ?? '',
  ttl_ms: document.expires_at_ms ? exactDuration(document.expires_at_ms - document.changed_at_ms) : '',
  history: String(document.history),
  attributes: writePairs(document.attributes),
});

// The fields of a message that is sent, by a person or by a schedule.

import { exactDuration, given, readDuration, readJson, readList, readNumber, readPairs, readText, writeList, writePairs } from '../kit.js';

export const MESSAGE_FIELDS = [
  { name: 'payload', label: 'Payload', type: 'textarea', wide: true, rows: 8 },
  { name: 'encoding', label: 'Payload is', type: 'select', options: [['text', 'text'], ['base64', 'octets as base64']] },
  { name: 'content_type', label: 'Content type', placeholder: 'application/json' },
  { name: 'headers', label: 'Headers', type: 'textarea', wide: true, rows: 3, hint: 'One "name: value" a line, or JSON.' },
  { name: 'priority', label: 'Priority', type: 'number', hint: '0 to 9, higher first.' },
  { name: 'delay_ms', label: 'Delay', hint: 'Such as 30s or 1h30m.' },
  { name: 'ttl_ms', label: 'Expires after', hint: 'If it still waits then.' },
  { name: 'max_attempts', label: 'Maximum attempts', type: 'number', hint: 'Empty: as the queue says.' },
  { name: 'tags', label: 'Tags', hint: 'Separated by commas, or JSON.' },
  { name: 'ordering_key', label: 'Ordering key', hint: 'One of each key is in flight, in the order of sending.' },
  { name: 'fair_key', label: 'Fair key', hint: 'Keys are served in turn.' },
  { name: 'limit_key', label: 'Limit key', hint: 'Counts against the limit per key.' },
  { name: 'cost', label: 'Cost', type: 'number', hint: 'In the rates of the limit; empty: 1.' },
  { name: 'correlation_id', label: 'Correlation id' },
  { name: 'reply_to', label: 'Reply to queue' },
  { name: 'result_ttl_ms', label: 'Keep the result for' },
  { name: 'backoff', label: 'Backoff', wide: true, hint: 'As JSON; empty: as the queue says.' },
  { name: 'hold', label: 'Hold until a person approves it', type: 'checkbox' },
];

const TEXTS = ['content_type', 'ordering_key', 'fair_key', 'limit_key', 'correlation_id', 'reply_to'];
const DURATIONS = ['delay_ms', 'ttl_ms', 'result_ttl_ms'];

export const BLANK_MESSAGE = Object.fromEntries(MESSAGE_FIELDS.map(({ name, type }) => [name, type === 'checkbox' ? false : name === 'encoding' ? 'text' : '']));

const eachOf = (names, read) => Object.fromEntries(names.map((name) => [name, read(name)]));

/** The body of a send, from the values of a form. */
export function readMessage(values) {
  return given({
    [values.encoding === 'base64' ? 'payload_base64' : 'payload']: values.payload,
    headers: readPairs('headers', values.headers),
    priority: readNumber('priority', values.priority),
    max_attempts: readNumber('max_attempts', values.max_attempts),
    cost: readNumber('cost', values.cost),
    tags: readList('tags', values.tags),
    backoff: readJson('backoff', values.backoff),
    hold: values.hold || undefined,
    ...eachOf(TEXTS, (name) => readText(values[name])),
    ...eachOf(DURATIONS, (name) => readDuration(name, values[name])),
  });
}

/** The values of a form, from a message that is stored or that a schedule sends. */
export function writeMessage(message) {
  return {
    ...eachOf(TEXTS, (name) => message[name] ?? ''),
    ...eachOf(DURATIONS, (name) => (message[name] ? exactDuration(message[name]) : '')),
    payload: message.payload ?? message.payload_base64 ?? '',
    encoding: message.payload_base64 === undefined ? 'text' : 'base64',
    headers: writePairs(message.headers),
    priority: message.priority ? String(message.priority) : '',
    max_attempts: message.max_attempts ? String(message.max_attempts) : '',
    cost: String(message.cost ?? ''),
    tags: writeList(message.tags),
    backoff: message.backoff ? JSON.stringify(message.backoff) : '',
    hold: message.hold ?? false,
  };
}

// The fields of changes that a person makes to one message, or by a bulk to many.

import { given, readDuration, readList, readNumber, readText } from '../kit.js';

export const TO = { name: 'to', label: 'To queue', required: true };
export const CHANGES = [
  { name: 'priority', label: 'Priority', type: 'number' },
  { name: 'delay_ms', label: 'Delay from now', hint: 'Such as 30s or 1h; 0: ready now.' },
  { name: 'max_attempts', label: 'Maximum attempts', type: 'number' },
  { name: 'tags', label: 'Tags', hint: 'Separated by commas; they replace all tags.' },
];
export const WHY = { name: 'why', label: 'Why', wide: true, aside: true, hint: 'Stands in the history of each message.' };

export const BLANK_CHANGE = { why: '', to: '', priority: '', delay_ms: '', max_attempts: '', tags: '' };

export const readChange = (values) => given({
  to: readText(values.to),
  why: readText(values.why),
  priority: readNumber('priority', values.priority),
  delay_ms: readDuration('delay_ms', values.delay_ms),
  max_attempts: readNumber('max_attempts', values.max_attempts),
  tags: readList('tags', values.tags),
});

// The parts of a limit, in words and as fields.

import { Action, api, duration, exactDuration, given, html, number, readDuration, readNumber, refuseName, useHere } from '../kit.js';

export const rateText = (rate) => rate && `${number(rate.count)} per ${duration(rate.period_ms)}${rate.burst ? `, burst ${number(rate.burst)}` : ''}`;

const rateFields = (name, label) => [
  { name: `${name}_count`, label: `${label}: deliveries`, type: 'number' },
  { name: `${name}_period`, label: `${label}: in`, hint: 'Such as 1s or 1m.' },
  { name: `${name}_burst`, label: `${label}: burst`, type: 'number', hint: 'Empty: as many as the deliveries.' },
];

const FIELDS = [
  { name: 'in_flight', label: 'In flight, of all queues', type: 'number', hint: 'Empty: not limited. The same for all parts.' },
  { name: 'in_flight_per_key', label: 'In flight, per limit key', type: 'number' },
  ...rateFields('rate', 'Rate'),
  ...rateFields('rate_per_key', 'Rate per key'),
];
const NAME = { name: 'name', label: 'Name', required: true };

function writtenRate(name, rate) {
  return {
    [`${name}_count`]: String(rate?.count ?? ''),
    [`${name}_period`]: rate ? exactDuration(rate.period_ms) : '1s',
    [`${name}_burst`]: String(rate?.burst ?? ''),
  };
}

const written = (settings) => ({
  in_flight: String(settings.in_flight ?? ''),
  in_flight_per_key: String(settings.in_flight_per_key ?? ''),
  ...writtenRate('rate', settings.rate),
  ...writtenRate('rate_per_key', settings.rate_per_key),
});

function readRate(name, values) {
  const count = readNumber(`${name}_count`, values[`${name}_count`]);
  if (count === undefined) return undefined;
  return given({ count, period_ms: readDuration(`${name}_period`, values[`${name}_period`]), burst: readNumber(`${name}_burst`, values[`${name}_burst`]) });
}

const read = (values) => given({
  in_flight: readNumber('in_flight', values.in_flight),
  in_flight_per_key: readNumber('in_flight_per_key', values.in_flight_per_key),
  rate: readRate('rate', values),
  rate_per_key: readRate('rate_per_key', values),
});

/** A button that sets a limit: a new one, or `limit`. */
export function SetLimit({ limit, onDone }) {
  const { p } = useHere();
  const run = async (values) => {
    const url = p + api.path('limits', limit?.name ?? values.name);
    refuseName(!limit && (await api.exists(url)));
    await api.put(url, read(values));
    return 'The limit is in force.';
  };
  return html`<${Action} label=${limit ? 'Change' : 'New limit'} right="operate" kind=${limit ? '' : 'primary'} title=${limit ? `Change ${limit.name}` : 'New limit'} confirm="Set"
    fields=${[!limit && NAME, ...FIELDS].filter(Boolean)} initial=${{ name: '', ...written(limit?.settings ?? {}) }} run=${run} onDone=${onDone} />`;
}

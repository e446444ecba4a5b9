// How figures, times and sizes are written.

const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], ['s', 1000], ['ms', 1]];

/** A duration with its two largest units: `1h 30m`. */
export function duration(ms) {
  if (ms === undefined || ms === null) return '–';
  const whole = Math.max(0, Math.round(ms));
  if (whole >= 1000 && whole < 10_000 && whole % 1000) return `${(whole / 1000).toFixed(1)}s`;
  const at = UNITS.findIndex(([, size]) => whole >= size);
  if (at < 0) return '0ms';
  const [unit, size] = UNITS[at];
  const first = `${Math.floor(whole / size)}${unit}`;
  const below = UNITS[at + 1];
  const rest = below && unit !== 's' ? Math.floor((whole % size) / below[1]) : 0;
  return rest ? `${first} ${rest}${below[0]}` : first;
}

/** A duration such that `parseDuration` gives it back exactly: `1h30m`. */
export function exactDuration(ms) {
  if (!ms) return '0';
  let rest = ms;
  return UNITS.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count ? `${count}${unit}` : '';
  }).join('');
}

const PART = /(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)/g;

/** Milliseconds of a text such as `90s` or `1h30m`; a plain number is milliseconds. NaN for anything else. */
export function parseDuration(text) {
  const plain = String(text).trim();
  if (/^\d+$/.test(plain)) return Number(plain);
  if (!plain || plain.replace(PART, '').trim()) return NaN;
  const sizes = Object.fromEntries(UNITS);
  return Math.round([...plain.matchAll(PART)].reduce((sum, [, count, unit]) => sum + count * sizes[unit], 0));
}

export const number = (value) => (value === undefined ? '–' : Number(value).toLocaleString('en-US'));

/** A rate per second with a sensible number of digits. */
export function rate(value) {
  if (!Number.isFinite(value)) return '–';
  const digits = value === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

/** A size in bytes: `3.2 MiB`. */
export function bytes(value) {
  if (value === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = value;
  let at = 0;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    at += 1;
  }
  return `${at && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[at]}`;
}

/** A point in time as a date with its zone, for people. */
export const absolute = (ms) => {
  const date = new Date(ms);
  const zone = -date.getTimezoneOffset();
  const shifted = new Date(ms + zone * 60_000).toISOString();
  const hours = String(Math.floor(Math.abs(zone) / 60)).padStart(2, '0');
  const minutes = String(Math.abs(zone) % 60).padStart(2, '0');
  const offset = zone ? `${zone < 0 ? '−' : '+'}${hours}:${minutes}` : 'Z';
  return `${shifted.slice(0, 10)} ${shifted.slice(11, 23)}${offset}`;
};

/** A point in time as seen from now: `3m ago`, `in 5s`. */
export function relative(ms, now = Date.now()) {
  const away = ms - now;
  if (Math.abs(away) < 1000) return 'now';
  const text = duration(Math.abs(away) < 10_000 ? Math.round(Math.abs(away) / 1000) * 1000 : Math.abs(away));
  return away < 0 ? `${text} ago` : `in ${text}`;
}

/** `1 message`, `2 messages`. */
export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** A text cut to a length, with an ellipsis. */
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** The first letter as a capital. */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The last error text of a message, and what else may stand in for it. */
export const lastError = (message) => message.history.at(-1)?.error ?? '';

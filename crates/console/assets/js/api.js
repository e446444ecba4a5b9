// Every call to the server. Errors carry the server's own words.

/** An error that the server told, or that it could not be reached. */
export class ApiError extends Error {
  constructor(status, { code, message, details }) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details ?? {};
  }
}

const UNREACHED = { code: 'unreached', message: 'The server does not answer. The console tries again.' };
let onUnauthenticated = () => {};

/** Calls `listener` whenever an answer says that nobody is signed in. */
export function whenUnauthenticated(listener) {
  onUnauthenticated = listener;
}

/** The path of the API for a namespace: `P` in the description of the HTTP API. */
export const base = (namespace) =>
  namespace === 'default' ? '/v1' : `/v1/namespaces/${encodeURIComponent(namespace)}`;

/** A path of segments, each of which may be any text. */
export const path = (...segments) => segments.map((segment) => `/${encodeURIComponent(segment)}`).join('');

/** A query string of those parameters that have a value. */
export function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '' && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : '';
}

async function errorOf(response) {
  const text = await response.text();
  try {
    return new ApiError(response.status, JSON.parse(text).error);
  } catch {
    const message = `The server answered ${response.status} ${response.statusText}`;
    return new ApiError(response.status, { code: 'unreadable', message });
  }
}

async function request(method, url, { body, headers, signal } = {}) {
  const init = { method, signal, headers: { ...headers }, credentials: 'same-origin', cache: 'no-store' };
  if (body !== undefined) {
    const isFile = body instanceof Blob;
    init.body = isFile ? body : JSON.stringify(body);
    init.headers['Content-Type'] = isFile ? body.type || 'application/octet-stream' : 'application/json';
  }
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, UNREACHED);
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  if (error.status === 401) onUnauthenticated();
  throw error;
}

async function json(method, url, options) {
  const response = await request(method, url, options);
  return response.status === 204 ? {} : response.json();
}

export const get = (url, options) => json('GET', url, options);
export const post = (url, body, options) => json('POST', url, { ...options, body });
export const put = (url, body, options) => json('PUT', url, { ...options, body });
export const patch = (url, body) => json('PATCH', url, { body });
export const remove = (url) => json('DELETE', url);
export const getText = async (url, options) => (await request('GET', url, options)).text();

/** The answer, or `fallback` where the server has nothing of this kind or the caller may not look at it. */
export async function getOr(fallback, url, options, statuses = [400, 403, 404, 409, 503]) {
  try {
    return await get(url, options);
  } catch (error) {
    if (error instanceof ApiError && statuses.includes(error.status)) return fallback;
    throw error;
  }
}

/** Whether there is something at an address. */
export const exists = async (url) => (await getOr(null, url, {}, [404])) !== null;

/** A text by which the server knows a repeat of a request. */
export const requestKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('');

const lineOf = (line) => {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
};

function eventOf(block) {
  const event = { type: 'message', data: [] };
  for (const line of block.split('\n')) {
    const [field, value] = lineOf(line);
    if (field === 'event') event.type = value;
    else if (field === 'data') event.data.push(value);
    else if (field === 'id') event.id = value;
  }
  return event;
}

async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value.replaceAll('\r', '')).split('\n\n');
    rest = blocks.pop();
    blocks.forEach((block) => take(eventOf(block)));
  }
}

const RECONNECT_MS = 2000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Reads a stream of server-sent events until the function that it returns is called. After an interruption it
 * continues behind the last event. `onState` is told `null` when it is connected, or the error.
 */
export function stream(url, onEvent, onState = () => {}) {
  const control = new AbortController();
  let lastId;
  const take = (event) => {
    lastId = event.id ?? lastId;
    if (event.data.length) onEvent(event.type, JSON.parse(event.data.join('\n')));
  };
  const readOnce = async () => {
    const headers = { Accept: 'text/event-stream', ...(lastId && { 'Last-Event-ID': lastId }) };
    const response = await request('GET', url, { headers, signal: control.signal });
    onState(null);
    await readEvents(response, take);
  };
  (async () => {
    while (!control.signal.aborted) {
      try {
        await readOnce();
      } catch (error) {
        if (control.signal.aborted) return;
        onState(error instanceof ApiError ? error : new ApiError(0, UNREACHED));
        if ([401, 403, 404].includes(error.status)) return;
      }
      await pause(RECONNECT_MS);
    }
  })();
  return () => control.abort();
}

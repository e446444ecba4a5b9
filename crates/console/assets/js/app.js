// What all views share: where we are, who we are, and hooks that load.

import { createContext, useCallback, useContext, useEffect, useRef, useState } from '../vendor/preact.js';
import * as api from './api.js';
import { href } from './router.js';

/** `{namespace, route, parameters, search, identity, can(right, at), show(dialog), ...}` */
export const App = createContext(null);
export const useApp = () => useContext(App);

/** The name of who is signed in, for a history: of 256 bytes at most, though it ends within a character. */
const signature = ({ proof, name }) => proof && new TextDecoder().decode(new TextEncoder().encode(name).slice(0, 253));

/** The path of the API, links and rights of the present namespace, and `by` whom a change is. */
export function useHere() {
  const app = useApp();
  const { namespace, identity } = app;
  return {
    ...app,
    by: signature(identity),
    p: api.base(namespace),
    to: (id, parameters, search) => href(namespace, id, parameters, search),
  };
}

/**
 * Loads by `load(signal)`, again when `deps` change, on `reload()`, which `round` counts, and each `every` ms
 * while the page is visible. Data of a former load stay until the next has come.
 */
export function useLoad(load, deps, { every } = {}) {
  const [state, setState] = useState({ data: undefined, error: null });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  const key = JSON.stringify(deps);
  const shown = useRef(key);
  useEffect(() => {
    const control = new AbortController();
    let timer;
    const once = async () => {
      if (!document.hidden || !every) await take(load, control, setState);
      if (every && !control.signal.aborted) timer = setTimeout(once, every);
    };
    if (shown.current !== key) setState({ data: undefined, error: null });
    shown.current = key;
    once();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key, round, every]);
  const stale = shown.current !== key;
  return { ...(stale ? { data: undefined, error: null } : state), reload, round };
}

/** Loads the answer to a `GET`. */
export const useGet = (url, options) => useLoad((signal) => api.get(url, { signal }), [url], options);

async function take(load, control, setState) {
  try {
    const data = await load(control.signal);
    if (!control.signal.aborted) setState({ data, error: null });
  } catch (error) {
    if (!control.signal.aborted) setState((state) => ({ ...state, error }));
  }
}

/** Calls `tick` each second while the component is there. */
export function useTick() {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
}

const SAMPLES = 900;

/** The statistics of a namespace or of one queue: samples of the last 15 minutes, a new one each second. */
export function useStatistics(p, queue) {
  const [samples, setSamples] = useState([]);
  const [error, setError] = useState(null);
  useEffect(() => {
    setSamples([]);
    const take = (type, data) => {
      if (type === 'statistics') setSamples((known) => [...known, ...data.samples].slice(-SAMPLES));
    };
    return api.stream(`${p}/statistics${api.query({ queue })}`, take, setError);
  }, [p, queue]);
  return { samples, error };
}

/** Calls per second of each total, between neighbouring samples. */
export function ratesOf(samples, names) {
  return samples.slice(1).map((sample, at) => {
    const before = samples[at];
    const seconds = Math.max(0.001, (sample.at_ms - before.at_ms) / 1000);
    return names.map((name) => Math.max(0, (sample.totals[name] - before.totals[name]) / seconds));
  });
}

const PAGES_AT_ONCE = 10;

/**
 * Looks through pages for rows that `wanted` accepts, page after page, until it has `enough` of them or has
 * looked at some pages; `more()` goes on. A page may tell how much was looked at for it, of how much, and
 * by which index.
 */
export function useScan(fetchPage, wanted, deps, enough = 100) {
  const [state, setState] = useState({ rows: [], scanned: 0, next: undefined, running: true, error: null });
  const control = useRef(null);
  const run = async (from, mine) => {
    let scan = { ...from, running: true, error: null };
    const goal = scan.rows.length + enough;
    try {
      for (let page = 0; page < PAGES_AT_ONCE && scan.rows.length < goal; page += 1) {
        const { rows, next, scanned = rows.length, total, index = scan.index } = await fetchPage(scan.next, mine.signal);
        scan = { ...scan, rows: [...scan.rows, ...rows.filter(wanted)], scanned: scan.scanned + scanned, total, index, next };
        if (mine.signal.aborted) return;
        setState(scan);
        if (!next) break;
      }
      setState({ ...scan, running: false });
    } catch (error) {
      if (!mine.signal.aborted) setState({ ...scan, running: false, error });
    }
  };
  const begin = (from) => {
    control.current?.abort();
    control.current = new AbortController();
    setState({ ...from, running: true });
    run(from, control.current);
  };
  const restart = () => begin({ rows: [], scanned: 0, next: undefined, error: null });
  useEffect(() => {
    restart();
    return () => control.current?.abort();
  }, [JSON.stringify(deps)]);
  return { ...state, more: () => begin(state), restart };
}

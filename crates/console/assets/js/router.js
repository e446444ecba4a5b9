// Addresses: `/console/{namespace}/{view}/...`. Links are plain `<a href>`, which `start` turns into steps.

import { ROUTES } from './routes.js';

const ROOT = '/console/';

/** A segment of an address: a dot is written as %2E, since a path with a dot names a file. */
const segment = (text) => encodeURIComponent(text).replaceAll('.', '%2E');

/** The address of a view, with its parameters in the place of `:name`, and a query of those that have a value. */
export function href(namespace, id, parameters = {}, search = {}) {
  const { path } = ROUTES.find((route) => route.id === id);
  const filled = path.split('/').map((part) => (part.startsWith(':') ? segment(parameters[part.slice(1)]) : part));
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '' && value !== null);
  const tail = given.length ? `?${new URLSearchParams(given)}` : '';
  return `${ROOT}${[segment(namespace), ...filled].filter(Boolean).join('/')}${tail}`;
}

function matched(route, parts) {
  const names = route.path ? route.path.split('/') : [];
  if (names.length !== parts.length) return null;
  const parameters = {};
  const fits = names.every((name, at) => {
    if (name.startsWith(':')) parameters[name.slice(1)] = parts[at];
    return name.startsWith(':') || name === parts[at];
  });
  return fits ? parameters : null;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What the present address names: a route with its parameters, or no route. */
export function current() {
  const parts = location.pathname.slice(ROOT.length).split('/').filter(Boolean).map(decoded);
  const [namespace = 'default', ...rest] = parts;
  const search = Object.fromEntries(new URLSearchParams(location.search));
  for (const route of ROUTES) {
    const parameters = matched(route, rest);
    if (parameters) return { namespace, route, parameters, search };
  }
  return { namespace, route: null, parameters: {}, search };
}

let onChange = () => {};

/** Goes to an address; `replace` leaves no step to go back to. */
export function go(address, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  onChange();
}

/** Sets parameters of the present address' query. */
export function setSearch(changes, options) {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '' || value === null) search.delete(name);
    else search.set(name, value);
  }
  const text = search.toString();
  go(location.pathname + (text ? `?${text}` : ''), options);
}

function onClick(event) {
  const link = event.target.closest?.('a[href]');
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !plain || link.target || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(ROOT) || link.hash) return;
  event.preventDefault();
  go(link.pathname + link.search);
}

/** Calls `listener` after each change of the address. */
export function start(listener) {
  onChange = listener;
  addEventListener('popstate', listener);
  document.addEventListener('click', onClick);
}

// Small parts: times, states, empty places, errors, headings.

import { html } from '../../vendor/preact.js';
import { useTick } from '../app.js';
import { absolute, relative } from '../format.js';

/** A point in time, relative; the absolute one as its title. */
export function Time({ at }) {
  useTick();
  if (at === undefined || at === null) return html`<span class="muted">–</span>`;
  return html`<time datetime=${new Date(at).toISOString()} title=${absolute(at)}>${relative(at)}</time>`;
}

/** A point in time with its date, where order matters more than distance. */
export const Instant = ({ at }) =>
  html`<time datetime=${new Date(at).toISOString()} title=${relative(at)}>${absolute(at)}</time>`;

/** The state of a message, a queue or another thing. Colour only repeats what the word says. */
export const Badge = ({ state, tone }) => html`<span class=${`badge ${tone ?? state}`}>${state}</span>`;

/** The flags of a queue that change what it does. */
export const QueueFlags = ({ settings }) => html`
  ${settings.paused && html`<${Badge} state="paused" tone="warn" />`}
  ${settings.closed && html`<${Badge} state="closed" tone="warn" />`}`;

export const Loading = ({ what = 'Loading' }) => html`<p class="loading" role="status">${what}…</p>`;

/** An error in the server's own words, with its code. */
export function Problem({ error, retry }) {
  if (!error) return null;
  return html`<div class="problem" role="alert">
    <p>${error.message}</p>
    <p class="muted">
      ${error.code && html`<code>${error.code}</code>`}
      ${retry && html` <button class="link" type="button" onClick=${retry}>Try again</button>`}
    </p>
  </div>`;
}

/** What stands where nothing is yet: what it would be, and what to do next. */
export const Empty = ({ title, children, command }) => html`<div class="empty">
  <p class="empty-title">${title}</p>
  ${children && html`<p>${children}</p>`}
  ${command && html`<p><code class="command">${command}</code></p>`}
</div>`;

/** The heading of a view, with its place above it and its actions beside it. */
export const Heading = ({ title, mono, trail = [], children, note }) => html`<header class="heading">
  ${trail.length > 0 &&
  html`<nav aria-label="Place" class="trail">
    ${trail.map(([text, address]) => html`<a href=${address}>${text}</a><span aria-hidden="true">/</span>`)}
  </nav>`}
  <div class="heading-row">
    <h1 class=${mono ? 'mono' : ''} tabindex="-1">${title}</h1>
    <div class="actions">${children}</div>
  </div>
  ${note && html`<p class="note">${note}</p>`}
</header>`;

/** A part of a view with a heading of its own. */
export const Card = ({ title, children, actions, wide }) => html`<section class=${`card${wide ? ' wide' : ''}`}>
  ${title && html`<div class="card-head"><h2>${title}</h2><div class="actions">${actions}</div></div>`}
  ${children}
</section>`;

/** Names with values. `rows` are `[name, value]`; those without a value are left out. */
export const Facts = ({ rows }) => html`<dl class="facts">
  ${rows
    .filter((row) => row && row[1] !== undefined && row[1] !== null && row[1] !== '')
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** One figure with its name; a link if it leads somewhere. */
export function Figure({ name, value, note, tone, to }) {
  const inner = html`<span class="figure-name">${name}</span><span class="figure-value">${value}</span>
    ${note && html`<span class="figure-note">${note}</span>`}`;
  const kind = `figure ${tone ?? ''}`;
  return to ? html`<a class=${kind} href=${to}>${inner}</a>` : html`<div class=${kind}>${inner}</div>`;
}

/** Views of the same thing, each with its address. */
export const Tabs = ({ label, tabs }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs
    .filter(Boolean)
    .map(([text, address, here]) => html`<a href=${address} aria-current=${here ? 'page' : undefined}>${text}</a>`)}
</nav>`;

/** Whether anything is loaded: an error, a sign of loading, or `children(data)`. */
export function Loaded({ state, children }) {
  if (state.data === undefined) {
    return state.error ? html`<${Problem} error=${state.error} retry=${state.reload} />` : html`<${Loading} />`;
  }
  return html`<${Problem} error=${state.error} retry=${state.reload} />${children(state.data)}`;
}

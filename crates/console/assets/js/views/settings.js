// The settings of a queue, with their meaning as the server's description of the API tells it.

import { Card, Fields, Loaded, Problem, api, exactDuration, fault, html, readDuration, readJson, readNumber, useForm, useHere, useLoad, useState } from '../kit.js';
import { QueueFrame } from '../parts/queue_frame.js';

const SWITCHES = ['paused', 'closed'];
const UNSET = { dead_letter_queue: '', limit: '', description: '', fair_weights: {}, on_expire: 'dead_letter', overflow: 'refuse_new', placement: 'fair', ordering_retry: 'block', push_url: '', push_secrets: [], push_timeout_ms: 15_000, push_concurrency: 16, push_rate: 0, push_headers: {}, push_paused: false, search_index: 'none' };
const AS_JSON = ['backoff', 'fair_weights', 'push_secrets', 'push_headers'];

const isDuration = (name) => name.endsWith('_ms');
const has = (schema, type) => [schema.type].flat().includes(type);

function kindOf(name, schema) {
  if (schema.enum) return { type: 'select', options: schema.enum };
  if (has(schema, 'boolean')) return { type: 'select', options: ['false', 'true'] };
  if (isDuration(name)) return { hint: `${schema.description} Such as 500ms, 30s, 1h30m.` };
  if (has(schema, 'integer')) return { type: 'number' };
  if (AS_JSON.includes(name)) return { type: 'textarea', wide: true, rows: 3 };
  return {};
}

const fieldOf = (name, schema) => ({ name, label: name, hint: schema.description, ...kindOf(name, schema) });

function written(name, value) {
  if (isDuration(name)) return exactDuration(value);
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function readOne(name, schema, text) {
  if (isDuration(name)) return readDuration(name, text);
  if (has(schema, 'boolean')) return text === 'true';
  if (has(schema, 'integer')) return readNumber(name, text);
  if (AS_JSON.includes(name)) return readJson(name, text);
  return text;
}

/** An emptied field is the empty value of its setting, if there is one. */
function read(name, schema, text, former) {
  const value = readOne(name, schema, text);
  if (value !== undefined) return value;
  if (typeof UNSET[name] === 'object') return UNSET[name];
  throw fault(name, `${name} needs a value: now it is ${former}`);
}

async function load(p, name, signal) {
  const [queue, description] = await Promise.all([api.get(p + api.path('queues', name), { signal }), api.get('/openapi.json', { signal })]);
  const { properties } = description.components.schemas.QueueSettings;
  const schemas = description.components.schemas;
  const resolved = Object.entries(properties).filter(([key]) => !SWITCHES.includes(key)).map(([key, schema]) => {
    const target = schema.$ref && schemas[schema.$ref.split('/').at(-1)];
    return [key, { ...target, ...schema }];
  });
  return { settings: queue.settings, schemas: Object.fromEntries(resolved) };
}

function Form({ data, url }) {
  const { can } = useHere();
  const names = Object.keys(data.schemas);
  const all = (settings) => Object.fromEntries(names.map((name) => [name, written(name, settings[name] ?? UNSET[name])]));
  const [before, setBefore] = useState(() => all(data.settings));
  const form = useForm(before);
  const [state, setState] = useState({ error: null, saved: false });
  const changed = names.filter((name) => form.values[name] !== before[name]);
  const submit = async (event) => {
    event.preventDefault();
    try {
      const changes = changed.map((name) => [name, read(name, data.schemas[name], form.values[name], before[name])]);
      const now = all((await api.patch(url, Object.fromEntries(changes))).settings);
      setBefore(now);
      form.setValues(now);
      setState({ error: null, saved: true });
    } catch (error) {
      setState({ error, saved: false });
    }
  };
  const fields = names.map((name) => fieldOf(name, data.schemas[name]));
  return html`<form onSubmit=${submit} noValidate>
    <${Fields} fields=${fields} form=${form} error=${state.error} />
    <${Problem} error=${state.error} />
    ${state.saved && !changed.length && html`<p role="status" class="good-text">The settings are in force.</p>`}
    ${can('operate') && html`<div class="buttons">
      <span class="muted">${changed.length ? `Changed: ${changed.join(', ')}` : 'Nothing is changed'}</span>
      <button class="primary" disabled=${!changed.length}>Save</button>
    </div>`}
  </form>`;
}

export default function Settings() {
  const { p, parameters } = useHere();
  const url = p + api.path('queues', parameters.queue);
  const state = useLoad((signal) => load(p, parameters.queue, signal), [url]);
  return html`<${QueueFrame} here="settings">
    <${Loaded} state=${state}>${(data) => html`<${Card}><${Form} data=${data} url=${url} /></${Card}>`}</${Loaded}>
  </${QueueFrame}>`;
}

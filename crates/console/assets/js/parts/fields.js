// Fields of forms. A field: {name, label, type, hint, options, required, rows, show, aside}.

import { html, useState } from '../../vendor/preact.js';
import { parseDuration } from '../format.js';

let serial = 0;
const useId = () => useState(() => `field-${(serial += 1)}`)[0];

/** Values of a form with a setter for one of them. */
export function useForm(initial) {
  const [values, setValues] = useState(initial);
  const set = (name, value) => setValues((known) => ({ ...known, [name]: value }));
  return { values, set, setValues };
}

function Control({ field, value, id, describedBy, invalid, onInput }) {
  const common = { id, name: field.name, required: field.required, 'aria-describedby': describedBy, 'aria-invalid': invalid };
  const take = (event) => onInput(event.currentTarget.value);
  if (field.type === 'select') {
    return html`<select ...${common} value=${value} onChange=${take}>
      ${field.options.map((option) => {
        const [key, text] = Array.isArray(option) ? option : [option, option];
        return html`<option value=${key} selected=${key === value}>${text}</option>`;
      })}
    </select>`;
  }
  if (field.type === 'textarea') {
    // A text area knows one end of lines only: a text with the other one keeps it.
    const takeLines = ({ currentTarget: { value: text } }) => onInput(value.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text);
    return html`<textarea ...${common} rows=${field.rows ?? 4} spellcheck=${false} value=${value} onInput=${takeLines} placeholder=${field.placeholder}></textarea>`;
  }
  if (field.type === 'file') return html`<input ...${common} type="file" onChange=${(event) => onInput(event.currentTarget.files[0])} />`;
  // A number input hides what is no number.
  const numeric = field.type === 'number';
  return html`<input ...${common} type=${numeric ? 'text' : field.type} inputmode=${numeric && 'numeric'} value=${value} onInput=${take} autocomplete="off" placeholder=${field.placeholder} />`;
}

/** A text in which parts between backticks are code. */
const Prose = ({ text }) => (text ?? '').split('`').map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

/** One field with its label, its hint, and what is wrong with it. */
export function Field({ field, value, onInput, error }) {
  const id = useId();
  const hintId = `${id}-hint`;
  if (field.type === 'checkbox') {
    return html`<div class="field check">
      <label><input id=${id} name=${field.name} type="checkbox" checked=${value} aria-describedby=${field.hint && hintId}
        onChange=${(event) => onInput(event.currentTarget.checked)} />${field.label}</label>
      ${field.hint && html`<p class="hint" id=${hintId}>${field.hint}</p>`}
    </div>`;
  }
  return html`<div class=${`field ${field.wide ? 'wide' : ''}`}>
    <label for=${id}>${field.label}${field.required && html`<span class="muted"> (required)</span>`}</label>
    <${Control} ...${{ field, value, id, onInput }} describedBy=${field.hint || error ? hintId : undefined} invalid=${error ? true : undefined} />
    <p class="hint" id=${hintId}>${error ? html`<strong class="bad-text">${error}</strong> ` : ''}<${Prose} text=${field.hint} /></p>
  </div>`;
}

/** The fields of a form, with the error that names one of them beside it. */
export function Fields({ fields, form, error }) {
  const wrong = error?.details?.field;
  return html`<div class="fields">
    ${fields.filter((field) => field && (!field.show || field.show(form.values))).map(
      (field) => html`<${Field} key=${field.name} field=${field} value=${form.values[field.name]}
        error=${wrong === field.name ? error.message : null} onInput=${(value) => form.set(field.name, value)} />`,
    )}
  </div>`;
}

const empty = (text) => text === undefined || String(text).trim() === '';

/** An error that stands beside the field with this name. */
export const fault = (name, message) => Object.assign(new Error(message), { code: 'not_sent', details: { field: name } });

/** A whole number, or `undefined` if nothing is written. */
export function readNumber(name, text) {
  if (empty(text)) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value)) throw fault(name, `Expected a whole number, got "${text}"`);
  return value;
}

/** Milliseconds of a duration such as `90s`, or `undefined` if nothing is written. */
export function readDuration(name, text) {
  if (empty(text)) return undefined;
  const value = parseDuration(text);
  if (Number.isNaN(value)) throw fault(name, `Expected a duration such as 500ms, 30s or 1d12h, got "${text}"`);
  return value;
}

export const readText = (text) => (empty(text) ? undefined : text);

/** The value of a JSON text; numbers that are rounded are refused. */
export function readJson(name, text) {
  if (empty(text)) return undefined;
  try {
    return JSON.parse(text, (_, value) => {
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw Error('a number is beyond 2^53');
      return value;
    });
  } catch (error) {
    throw fault(name, `Expected JSON: ${error.message}`);
  }
}

/** Reads a short form, or JSON, which begins with a mark of its own. */
const readShort = (mark, read) => (name, text) => {
  if (empty(text) || text.trim().startsWith(mark)) return readJson(name, text);
  return read(name, text);
};

/** Writes the short form of values where it is read as the same values, else JSON. */
const writeShort = (write, read) => (values) => {
  if (!Object.keys(values ?? {}).length) return '';
  const json = JSON.stringify(values);
  try {
    const short = write(values);
    return JSON.stringify(read('', short)) === json ? short : json;
  } catch {
    return json;
  }
};

/** Names with values, one `name: value` a line. */
export const readPairs = readShort('{', (name, text) => {
  const pairs = text.split('\n').filter((line) => line.trim()).map((line) => {
    const colon = line.indexOf(':');
    if (colon < 1) throw fault(name, `Expected "name: value" on each line, got "${line}"`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
  });
  return Object.fromEntries(pairs);
});

export const writePairs = writeShort((pairs) => Object.entries(pairs).map(([name, value]) => `${name}: ${value}`).join('\n'), readPairs);

/** A list of texts, separated by commas. */
export const readList = readShort('[', (name, text) => text.split(',').map((part) => part.trim()).filter(Boolean));

export const writeList = writeShort((list) => list.join(', '), readList);

/** Refuses the name of a new thing if another one has it, which would be replaced. */
export function refuseName(taken) {
  if (taken) throw fault('name', 'There is one with this name: take another, or change that one.');
}

/** An object without the members that have no value. */
export const given = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

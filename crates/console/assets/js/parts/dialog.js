// Dialogs, and the button of an action that shows what it will touch before it does it.

import { html, useEffect, useLayoutEffect, useRef, useState } from '../../vendor/preact.js';
import { useApp } from '../app.js';
import { Fields, useForm } from './fields.js';
import { Loading, Problem } from './basics.js';

/** A modal dialog. Escape, the button and links in it close it, the palette a click beside it too. */
export function Dialog({ title, onClose, children, kind = '' }) {
  const ref = useRef(null);
  // Before the next key comes: what is typed right after ⌘K belongs to the palette.
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => (before?.isConnected ? before : document.getElementById('view'))?.focus();
  }, []);
  return html`<dialog ref=${ref} class=${kind} aria-label=${title} onClose=${onClose}
    onClick=${(event) => ((kind && event.target === ref.current) || event.target.closest('a')) && ref.current.close()}>
    <div class="dialog-body">
      ${kind !== 'palette' && html`<h2>${title}</h2>`}
      ${children}
    </div>
  </dialog>`;
}

const Bar = ({ done, total, text }) => html`<div class="progress" role="status">
  <progress max=${total || 1} value=${done} aria-label="Progress"></progress>
  <span>${text}</span>
</div>`;

/** Only `stop()` ends what runs: it goes on when the dialog is closed. */
function useRun(run, onDone) {
  const [state, setState] = useState({ phase: 'asked' });
  const control = useRef(null);
  const begin = async (...args) => {
    control.current = new AbortController();
    setState({ phase: 'running' });
    const tools = {
      signal: control.current.signal,
      report: (progress) => setState({ phase: 'running', progress }),
    };
    try {
      setState({ phase: 'done', result: await run(...args, tools) });
      onDone?.();
    } catch (error) {
      setState({ phase: 'asked', error });
    }
  };
  return { ...state, begin, stop: () => control.current.abort() };
}

const TYPING_MS = 400;

/**
 * What would be touched with these values, looked at when nobody has typed for a while. Values of fields that
 * are `aside` change nothing of it.
 */
function usePreview(load, values, aside) {
  const [state, setState] = useState({});
  const [round, setRound] = useState(0);
  const first = useRef(true);
  const key = JSON.stringify([round, { ...values, ...Object.fromEntries(aside.map(({ name }) => [name, ''])) }]);
  useEffect(() => {
    if (!load) return undefined;
    const control = new AbortController();
    const take = (found) => control.signal.aborted || setState({ key, ...found });
    const look = () => load(values, control.signal).then((data) => take({ data }), (error) => take({ error }));
    const timer = setTimeout(look, first.current ? 0 : TYPING_MS);
    first.current = false;
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key]);
  const { data, error } = state.key === key ? state : {};
  return { data, error, running: load && state.key !== key, retry: () => setRound(round + 1) };
}

function ActionDialog({ title, fields = [], initial = {}, preview: load, body, confirm, danger, run, onDone, onClose }) {
  const form = useForm(initial);
  const preview = usePreview(load, form.values, fields.filter((field) => field.aside));
  const work = useRun(run, onDone);
  const close = (event) => event.currentTarget.closest('dialog').close();
  if (work.phase === 'done') {
    return html`<${Dialog} title=${title} onClose=${onClose}>
      <p role="status">${work.result || 'Done.'}</p>
      <div class="buttons"><button type="button" class="primary" autofocus onClick=${close}>Close</button></div>
    </${Dialog}>`;
  }
  const busy = work.phase === 'running';
  const submit = (event) => {
    event.preventDefault();
    work.begin(form.values, preview.data);
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form onSubmit=${submit} noValidate>
      <div>
        ${preview.running ? html`<${Loading} what="Looking at what this will touch" />` : !preview.error && body?.(preview.data, form.values)}
        <${Problem} error=${preview.error} retry=${preview.error?.status && preview.retry} />
      </div>
      <${Fields} fields=${fields} form=${form} error=${work.error ?? preview.error} />
      <${Problem} error=${work.error} />
      ${work.progress && busy && html`<${Bar} ...${work.progress} />`}
      <div class="buttons">
        ${busy && work.progress
          ? html`<button type="button" onClick=${work.stop}>Stop</button>`
          : html`<button type="button" onClick=${close}>Close</button>`}
        <button class=${danger ? 'danger' : 'primary'} disabled=${busy || preview.running || preview.error || preview.data?.nothing}>
          ${busy ? 'Working…' : confirm}
        </button>
      </div>
    </form>
  </${Dialog}>`;
}

/**
 * A button that opens a dialog and then acts. `preview(values, signal)` loads what would be touched,
 * `body(preview, values)` shows it; with `{nothing: true}` in the preview there is nothing to do.
 * `run(values, preview, {report, signal})` acts and answers with what to say. Callers without the `right`, at
 * the place `at`, do not see it.
 */
export function Action({ label, right, at, kind = '', disabled, ...dialog }) {
  const { can, show } = useApp();
  if (!can(right, at)) return null;
  const open = () => show({ confirm: label, ...dialog });
  return html`<button type="button" class=${dialog.danger ? 'danger-quiet' : kind} disabled=${disabled} onClick=${open}>${label}</button>`;
}

/** The place of the dialog of an action: not within the view, which may go while the action runs. */
export const ActionHost = ({ dialog, onClose }) => dialog && html`<${ActionDialog} ...${dialog} onClose=${onClose} />`;

/** A button that acts at once, for what can be undone by its counterpart. */
export function Quick({ label, right, at, run, onDone, kind = '' }) {
  const { can } = useApp();
  const [state, setState] = useState({ busy: false, error: null });
  if (!can(right, at)) return null;
  const click = async () => {
    setState({ busy: true, error: null });
    try {
      await run();
      setState({ busy: false, error: null });
      onDone?.();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<button type="button" class=${kind} disabled=${state.busy} onClick=${click}>${label}</button>
    ${state.error && html`<${Dialog} title="Refused" onClose=${() => setState({ busy: false, error: null })}>
      <${Problem} error=${state.error} />
      <form method="dialog" class="buttons"><button class="primary">Close</button></form>
    </${Dialog}>`}`;
}

// The stored policy: who may do what.

import { Action, Card, Field, Heading, Loaded, Problem, Time, api, html, useLoad, useState } from '../kit.js';

const NONE = { policy: '', version: '' };
const TEXT = {
  name: 'policy', label: 'Policy', type: 'textarea', rows: 22, wide: true,
  placeholder: '[[rule]]\nname = "on call"\nidentities = ["*@example.org"]\nrole = "operator"\nnamespaces = ["*"]',
  hint: 'TOML. It counts on every node, in the place of the policy files. You must still be an administrator by it.',
};

function Form({ stored, reload }) {
  const [text, setText] = useState(stored.policy);
  const [state, setState] = useState({ error: null });
  const submit = async (event) => {
    event.preventDefault();
    try {
      const { version } = await api.put('/v1/policy', { policy: text, version: stored.version });
      setState({ error: null, said: `In force as version ${version}.` });
      reload();
    } catch (error) {
      setState({ error });
    }
  };
  return html`<form onSubmit=${submit} noValidate>
    <${Field} field=${TEXT} value=${text} onInput=${setText} />
    <${Problem} error=${state.error} />
    ${state.said && html`<p role="status" class="good-text">${state.said}</p>`}
    <div class="buttons"><button class="primary" disabled=${text === stored.policy}>Put into force</button></div>
  </form>`;
}

function Remove({ stored, reload }) {
  const run = async () => {
    await api.remove(`/v1/policy${api.query({ version: stored.version })}`);
    return 'The stored policy is removed.';
  };
  return html`<${Action} label="Remove" right="admin" danger title="Remove the stored policy" body=${() => html`<p>Each server uses its policy file again.</p>`} run=${run} onDone=${reload} />`;
}

const load = (signal) => api.getOr(NONE, '/v1/policy', { signal });

export default function Policy() {
  const state = useLoad(load, []);
  const stored = state.data;
  return html`<${Heading} title="Policy">${stored?.version && html`<${Remove} stored=${stored} reload=${state.reload} />`}</${Heading}>
    <${Loaded} state=${state}>${(known) => html`
      <p class="note">${known.version ? html`Version <code>${known.version}</code>, set by ${known.set_by} <${Time} at=${known.set_at_ms} />.` : 'No policy is stored: each server uses the policy file of its settings, if it has one.'}</p>
      <${Card}><${Form} key=${known.version} stored=${known} reload=${state.reload} /></${Card}>`}
    </${Loaded}>`;
}

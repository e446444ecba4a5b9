// Writes a document that is not there yet.

import { Card, Fields, Heading, Problem, api, go, html, useForm, useHere, useState } from '../kit.js';
import { DOCUMENT_FIELDS, readDocument } from '../parts/document_form.js';

const KEY = { name: 'key', label: 'Key', required: true, wide: true, hint: 'Any text, such as config/web.' };
const BLANK = { key: '', content: '', content_type: 'application/json', attributes: '', ttl_ms: '', history: '5' };

export default function DocumentNew() {
  const { p, to } = useHere();
  const form = useForm(BLANK);
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.put(p + api.path('documents', form.values.key), { ...readDocument(form.values), if_absent: true });
      go(to('document', { key: form.values.key }));
    } catch (refused) {
      setError(refused);
    }
  };
  return html`<${Heading} title="New document" trail=${[['Documents', to('documents')]]} />
    <${Card}><form onSubmit=${submit} noValidate>
      <${Fields} fields=${[KEY, ...DOCUMENT_FIELDS]} form=${form} error=${error} />
      <${Problem} error=${error} />
      <div class="buttons"><button class="primary" disabled=${!form.values.key}>Create</button></div>
    </form></${Card}>`;
}

// The history of a message as a timeline: its sending, its attempts, what people did, and where it is now.

import { Badge, Instant, duration, html } from '../kit.js';

const TONES = { nacked: 'bad', rejected: 'bad', expired: 'bad', released: 'calm' };
const NOW = {
  delayed: (m) => [m.deadline_ms, 'becomes ready'],
  leased: (m) => [m.deadline_ms, `its lease ends, unless ${m.holder?.name || 'its consumer'} settles or extends it`],
  dead: (m) => [m.reason_at_ms, `became a dead letter: ${m.reason}`],
  held: (m) => [m.reason_at_ms, `held: ${m.reason}`],
  done: (m) => [m.done_at_ms, 'done'],
};

function stepsOf(message) {
  const steps = [{ at: message.sent_at_ms, title: 'sent', tone: 'calm' }];
  for (const attempt of message.history) {
    steps.push({
      at: attempt.ended_at_ms,
      title: `attempt ${attempt.attempt} ${attempt.end}`,
      tone: TONES[attempt.end],
      note: `after ${duration(attempt.ended_at_ms - attempt.started_at_ms)}`,
      error: attempt.error,
    });
  }
  for (const change of message.changes ?? []) {
    const who = change.by ? ` by ${change.by}` : '';
    steps.push({ at: change.at_ms, title: `${change.change}${who}`, tone: 'person', note: change.why });
  }
  const now = NOW[message.state]?.(message);
  if (now?.[0]) steps.push({ at: now[0], title: now[1], tone: message.state, now: true });
  return steps.sort((a, b) => a.at - b.at);
}

export function Timeline({ message }) {
  const steps = stepsOf(message);
  return html`<ol class="timeline">
    ${steps.map((step) => html`<li class=${`step ${step.tone ?? ''}`}>
      <div class="step-title">${step.title}${step.now && html` <${Badge} state=${message.state} />`}</div>
      <div class="muted"><${Instant} at=${step.at} />${step.note ? ` · ${step.note}` : ''}</div>
      ${step.error && html`<pre class="error-text">${step.error}</pre>`}
    </li>`)}
  </ol>
  ${message.history.length >= 32 && html`<p class="muted">Of long histories the server remembers the first and the latest entries.</p>`}`;
}

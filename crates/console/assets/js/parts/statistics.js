// The charts of statistics: what flows, what fails, what waits.

import { Card, duration, html, number, rate, ratesOf } from '../kit.js';
import { Chart } from './chart.js';

const FLOW = ['sent', 'delivered', 'acked'];
const TROUBLE = ['nacked', 'expired', 'rejected', 'died'];
const BACKLOG = ['ready', 'delayed', 'blocked', 'leased'];
const TROUBLE_COLOURS = [3, 5, 2, 4];

const named = (names, colours) => names.map((name, at) => ({ name, colour: colours?.[at] }));
const turned = (rows, names) => names.map((_, at) => rows.map((row) => row[at]));

export function StatisticsCharts({ samples }) {
  const later = samples.slice(1).map((sample) => sample.at_ms);
  const times = samples.map((sample) => sample.at_ms);
  return html`<div class="grid">
    <${Card}><${Chart} title="Messages per second" series=${named(FLOW)} times=${later} data=${turned(ratesOf(samples, FLOW), FLOW)} write=${rate} /></${Card}>
    <${Card}><${Chart} title="Failures per second" series=${named(TROUBLE, TROUBLE_COLOURS)} times=${later} data=${turned(ratesOf(samples, TROUBLE), TROUBLE)} write=${rate} /></${Card}>
    <${Card}><${Chart} title="Backlog" series=${named(BACKLOG)} times=${times} data=${BACKLOG.map((name) => samples.map((one) => one.counts[name]))} write=${number} /></${Card}>
    <${Card}><${Chart} title="Age of the oldest ready message" series=${[{ name: 'oldest' }]} times=${times} data=${[samples.map((one) => one.oldest_ready_age_ms ?? 0)]} write=${duration} /></${Card}>
  </div>`;
}

// Creates or replaces a schedule.

import { Card, Fields, Heading, Loaded, Problem, api, exactDuration, given, go, html, readDuration, readText, refuseName, useForm, useHere, useLoad, useState } from '../kit.js';
import { BLANK_MESSAGE, MESSAGE_FIELDS, readMessage, writeMessage } from '../parts/message_form.js';

const NAME = { name: 'name', label: 'Name', required: true };
const CRON = 'cron';
const FIELDS = [
  { name: 'queue', label: 'Queue', required: true, hint: 'Created by the first message.' },
  { name: 'kind', label: 'Times', type: 'select', options: [[CRON, 'at times of day (cron)'], ['every', 'at an interval']] },
  { name: 'cron', label: 'Cron expression', hint: 'Minute, hour, day of month, month, day of week; six fields with seconds first; or @hourly, @daily, @weekly, @monthly, @yearly.', show: ({ kind }) => kind === CRON },
  { name: 'time_zone', label: 'Time zone', hint: 'A name of the IANA database, such as Europe/Berlin.', show: ({ kind }) => kind === CRON },
  { name: 'every_ms', label: 'Interval', hint: 'Such as 30s or 1h; 1s at least.', show: ({ kind }) => kind !== CRON },
  { name: 'missed', label: 'Times at which the server was down', type: 'select', options: [['once', 'one message for all of them'], ['all', 'one for each of the latest 1,000'], ['skip', 'none']] },
];

const BLANK = { name: '', queue: '', kind: CRON, cron: '', time_zone: 'UTC', every_ms: '', missed: 'once', ...BLANK_MESSAGE };

const written = (schedule) => ({
  ...BLANK,
  ...writeMessage(schedule.message),
  name: schedule.name,
  queue: schedule.queue,
  kind: schedule.cron ? CRON : 'every',
  cron: schedule.cron ?? '',
  time_zone: schedule.time_zone ?? 'UTC',
  every_ms: schedule.every_ms ? exactDuration(schedule.every_ms) : '',
  missed: schedule.missed ?? 'once',
});

function read(values, former) {
  const times = values.kind === CRON ? { cron: values.cron, time_zone: readText(values.time_zone) } : { every_ms: readDuration('every_ms', values.every_ms) };
  // A unique key has no field here: it stays as it was.
  const message = given({ ...readMessage(values), unique: former?.message.unique });
  return given({ ...times, queue: values.queue, missed: values.missed, message });
}

function Form({ schedule }) {
  const { p, to } = useHere();
  const form = useForm(schedule ? written(schedule) : BLANK);
  const [error, setError] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    try {
      const url = p + api.path('schedules', form.values.name);
      refuseName(!schedule && (await api.exists(url)));
      await api.put(url, read(form.values, schedule));
      go(to('schedule', { schedule: form.values.name }));
    } catch (refused) {
      setError(refused);
    }
  };
  return html`<form onSubmit=${submit} noValidate>
    <${Fields} fields=${[!schedule && NAME, ...FIELDS, ...MESSAGE_FIELDS]} form=${form} error=${error} />
    <${Problem} error=${error} />
    <div class="buttons"><button class="primary" disabled=${!form.values.name || !form.values.queue}>${schedule ? 'Save' : 'Create'}</button></div>
  </form>`;
}

export default function ScheduleForm() {
  const { p, to, parameters } = useHere();
  const { schedule } = parameters;
  const state = useLoad((signal) => (schedule ? api.get(p + api.path('schedules', schedule), { signal }) : Promise.resolve(null)), [p, schedule]);
  const trail = [['Schedules', to('schedules')], schedule && [schedule, to('schedule', { schedule })]].filter(Boolean);
  return html`<${Heading} title=${schedule ? 'Edit schedule' : 'New schedule'} trail=${trail} />
    <${Loaded} state=${state}>${(known) => html`<${Card}><${Form} schedule=${known} /></${Card}>`}</${Loaded}>`;
}

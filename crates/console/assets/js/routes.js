// All views: address, title, place in the menu, the right that they need and where, and their modules.

import { SERVER, WHOLE } from './rights.js';

/** Without `at` the right is needed at what the address names, or else somewhere in the namespace. */
const view = (id, path, title, more) => {
  const module = more.module ?? id.replaceAll('-', '_');
  return { id, path, title, right: 'observe', load: () => import(`./views/${module}.js`), ...more };
};

/** Groups of the menu, in their order. */
export const GROUPS = ['', 'Work', 'State', 'Server'];

export const ROUTES = [
  view('overview', '', 'Overview', { group: '', at: WHOLE }),
  view('queues', 'queues', 'Queues', { group: 'Work' }),
  view('queue', 'queues/:queue', 'Queue', { within: 'queues' }),
  view('messages', 'queues/:queue/messages', 'Messages', { within: 'queues' }),
  view('dead', 'queues/:queue/dead', 'Dead letters of a queue', { within: 'dead-letters' }),
  view('pushes', 'queues/:queue/pushes', 'Pushes', { within: 'queues' }),
  view('settings', 'queues/:queue/settings', 'Settings', { within: 'queues' }),
  view('message', 'messages/:id', 'Message', { within: 'queues' }),
  view('dead-letters', 'dead-letters', 'Dead letters', { group: 'Work' }),
  view('bulks', 'bulks', 'Bulks', { group: 'Work' }),
  view('schedules', 'schedules', 'Schedules', { group: 'Work', at: WHOLE }),
  view('schedule-new', 'new-schedule', 'New schedule', { within: 'schedules', right: 'operate', at: WHOLE, module: 'schedule_form' }),
  view('schedule', 'schedules/:schedule', 'Schedule', { within: 'schedules', at: WHOLE }),
  view('schedule-edit', 'schedules/:schedule/edit', 'Edit schedule', { within: 'schedules', right: 'operate', at: WHOLE, module: 'schedule_form' }),
  view('limits', 'limits', 'Limits', { group: 'Work', at: WHOLE }),
  view('limit', 'limits/:limit', 'Limit', { within: 'limits', at: WHOLE }),
  view('consumers', 'consumers', 'Consumers', { group: 'Work', at: WHOLE }),
  view('consumer', 'consumers/:consumer', 'Consumer', { within: 'consumers', at: WHOLE }),
  view('events', 'events', 'Live events', { group: 'Work', at: WHOLE }),
  view('send', 'send', 'Send a message', { group: 'Work', right: 'propose' }),
  view('locks', 'locks', 'Locks', { group: 'State' }),
  view('lock', 'locks/:key', 'Lock', { within: 'locks' }),
  view('documents', 'documents', 'Documents', { group: 'State', right: 'read' }),
  view('document-new', 'new-document', 'New document', { within: 'documents', right: 'coordinate' }),
  view('document', 'documents/:key', 'Document', { within: 'documents', right: 'read' }),
  view('transactions', 'transactions', 'Transactions', { group: 'State', at: WHOLE }),
  view('nodes', 'nodes', 'Nodes and shards', { group: 'Server', at: SERVER }),
  view('tokens', 'tokens', 'Tokens', { group: 'Server', right: 'admin', at: SERVER }),
  view('policy', 'policy', 'Policy', { group: 'Server', right: 'admin', at: SERVER }),
  view('audit', 'audit', 'Audit log', { group: 'Server', right: 'admin', at: SERVER }),
];

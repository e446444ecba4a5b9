// All views: address, title, place in the menu, the right that they need, and the module that shows them.

const view = (name) => () => import(`./views/${name}.js`);

/** Groups of the menu, in their order. */
export const GROUPS = ['', 'Work', 'State', 'Server'];

export const ROUTES = [
  { id: 'overview', path: '', title: 'Overview', group: '', right: 'observe', load: view('overview') },
  { id: 'queues', path: 'queues', title: 'Queues', group: 'Work', right: 'observe', load: view('queues') },
  { id: 'queue', path: 'queues/:queue', title: 'Queue', within: 'queues', right: 'observe', load: view('queue') },
  { id: 'messages', path: 'queues/:queue/messages', title: 'Messages', within: 'queues', right: 'observe', load: view('messages') },
  { id: 'dead', path: 'queues/:queue/dead', title: 'Dead letters of a queue', within: 'dead-letters', right: 'observe', load: view('dead') },
  { id: 'settings', path: 'queues/:queue/settings', title: 'Settings', within: 'queues', right: 'observe', load: view('settings') },
  { id: 'message', path: 'messages/:id', title: 'Message', within: 'queues', right: 'observe', load: view('message') },
  { id: 'dead-letters', path: 'dead-letters', title: 'Dead letters', group: 'Work', right: 'observe', load: view('dead_letters') },
  { id: 'bulks', path: 'bulks', title: 'Bulks', group: 'Work', right: 'observe', load: view('bulks') },
  { id: 'schedules', path: 'schedules', title: 'Schedules', group: 'Work', right: 'observe', load: view('schedules') },
  { id: 'schedule-new', path: 'new-schedule', title: 'New schedule', within: 'schedules', right: 'operate', load: view('schedule_form') },
  { id: 'schedule', path: 'schedules/:schedule', title: 'Schedule', within: 'schedules', right: 'observe', load: view('schedule') },
  { id: 'schedule-edit', path: 'schedules/:schedule/edit', title: 'Edit schedule', within: 'schedules', right: 'operate', load: view('schedule_form') },
  { id: 'limits', path: 'limits', title: 'Limits', group: 'Work', right: 'observe', load: view('limits') },
  { id: 'limit', path: 'limits/:limit', title: 'Limit', within: 'limits', right: 'observe', load: view('limit') },
  { id: 'consumers', path: 'consumers', title: 'Consumers', group: 'Work', right: 'observe', load: view('consumers') },
  { id: 'consumer', path: 'consumers/:consumer', title: 'Consumer', within: 'consumers', right: 'observe', load: view('consumer') },
  { id: 'events', path: 'events', title: 'Live events', group: 'Work', right: 'observe', load: view('events') },
  { id: 'send', path: 'send', title: 'Send a message', group: 'Work', right: 'send', load: view('send') },
  { id: 'locks', path: 'locks', title: 'Locks', group: 'State', right: 'observe', load: view('locks') },
  { id: 'lock', path: 'locks/:key', title: 'Lock', within: 'locks', right: 'observe', load: view('lock') },
  { id: 'documents', path: 'documents', title: 'Documents', group: 'State', right: 'read', load: view('documents') },
  { id: 'document-new', path: 'new-document', title: 'New document', within: 'documents', right: 'coordinate', load: view('document_new') },
  { id: 'document', path: 'documents/:key', title: 'Document', within: 'documents', right: 'read', load: view('document') },
  { id: 'transactions', path: 'transactions', title: 'Transactions', group: 'State', right: 'observe', load: view('transactions') },
  { id: 'nodes', path: 'nodes', title: 'Nodes and shards', group: 'Server', right: 'observe-server', load: view('nodes') },
  { id: 'tokens', path: 'tokens', title: 'Tokens', group: 'Server', right: 'administrate', load: view('tokens') },
  { id: 'policy', path: 'policy', title: 'Policy', group: 'Server', right: 'administrate', load: view('policy') },
  { id: 'audit', path: 'audit', title: 'Audit log', group: 'Server', right: 'administrate', load: view('audit') },
];

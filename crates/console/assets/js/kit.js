// What views and their parts are made of, by one import.

export * as api from './api.js';
export * from './app.js';
export * from './format.js';
export * from './parts/basics.js';
export * from './parts/dialog.js';
export * from './parts/fields.js';
export * from './parts/table.js';
export { go, setSearch } from './router.js';
export { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';

// The frame around all views: menu, namespace, palette, theme, identity.

import { go, html, useEffect, useHere, useRef, useState } from '../kit.js';
import { GROUPS, ROUTES } from '../routes.js';
import { Palette } from './palette.js';

const THEMES = { system: 'dark', dark: 'light', light: 'system' };

function ThemeSwitch() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? 'system');
  const next = () => {
    const chosen = THEMES[theme];
    if (chosen === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem('sluice-theme', chosen);
    } catch {
      // Without storage the choice holds for this page.
    }
    setTheme(chosen);
  };
  return html`<button type="button" class="quiet" onClick=${next} title="Change the theme">Theme: ${theme}</button>`;
}

function Menu({ open }) {
  const { route, to, can } = useHere();
  const here = route?.within ?? route?.id;
  return html`<nav class=${`menu ${open ? 'open' : ''}`} id="menu" aria-label="Views">
    ${GROUPS.map((group) => {
      const entries = ROUTES.filter((one) => one.group === group && can(one.right, one.at ?? {}));
      return entries.length > 0 && html`<div class="menu-group">
        ${group && html`<p class="menu-title" id=${`group-${group}`}>${group}</p>`}
        <ul aria-labelledby=${group ? `group-${group}` : undefined}>
          ${entries.map((one) => html`<li><a href=${to(one.id)} aria-current=${one.id === here ? 'page' : undefined}>${one.title}</a></li>`)}
        </ul>
      </div>`;
    })}
  </nav>`;
}

function NamespaceChoice() {
  const { namespace, namespaces, inNamespace } = useHere();
  if (namespaces.length < 2) return html`<span class="muted">namespace <b>${namespace}</b></span>`;
  return html`<label class="namespace"><span class="muted">namespace</span>
    <select value=${namespace} onChange=${(event) => go(inNamespace(event.currentTarget.value))}>
      ${namespaces.map((name) => html`<option value=${name} selected=${name === namespace}>${name}</option>`)}
    </select></label>`;
}

function Identity({ identity, onSignOut }) {
  if (!identity.proof) return null;
  return html`<span class="identity" title=${(identity.grants ?? []).join('\n')}>${identity.name}</span>
    ${identity.proof === 'token' && html`<button type="button" class="quiet" onClick=${onSignOut}>Sign out</button>`}`;
}

/** In another view the focus and the sight begin at its top. */
function useArrival(route, parameters, onArrival) {
  const first = useRef(true);
  useEffect(() => {
    onArrival();
    if (!first.current) {
      document.getElementById('view').focus();
      scrollTo(0, 0);
    }
    first.current = false;
  }, [route, JSON.stringify(parameters)]);
}

export function Shell({ onSignOut, children }) {
  const { identity, route, parameters } = useHere();
  const [palette, setPalette] = useState(false);
  const [menu, setMenu] = useState(false);
  useEffect(() => {
    const onKey = (event) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setPalette(true);
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useArrival(route, parameters, () => setMenu(false));
  return html`<div class="shell">
    <a class="skip" href="#view">Skip to the view</a>
    <header class="top">
      <button type="button" class="menu-button quiet" aria-expanded=${menu} aria-controls="menu" onClick=${() => setMenu(!menu)}>Menu</button>
      <a class="brand" href="/console/"><img src="/console/icon.svg" width="22" height="22" alt="" />Sluice</a>
      <${NamespaceChoice} />
      <button type="button" class="go" onClick=${() => setPalette(true)}><span>Go to…</span><kbd>${navigator.platform.startsWith('Mac') ? '⌘K' : 'Ctrl K'}</kbd></button>
      <span class="spring"></span>
      <${Identity} identity=${identity} onSignOut=${onSignOut} />
      <${ThemeSwitch} />
    </header>
    <${Menu} open=${menu} />
    <main id="view" tabindex="-1">${children}</main>
    ${palette && html`<${Palette} onClose=${() => setPalette(false)} />`}
  </div>`;
}

// Begins: asks who the caller is, and shows the view that the address names.

import { html, render, useCallback, useEffect, useMemo, useState } from '../vendor/preact.js';
import * as api from './api.js';
import { App, useLoad } from './app.js';
import { Heading, Loading, Problem } from './parts/basics.js';
import { ActionHost } from './parts/dialog.js';
import { Shell } from './parts/shell.js';
import { rightsIn } from './rights.js';
import { current, go, href, start } from './router.js';
import { ROUTES } from './routes.js';
import { SignIn } from './views/sign_in.js';

const NotLoaded = () => html`<${Problem} error=${{ message: 'This view could not be loaded: reload the page.' }} />`;

/** The module of a view, loaded when it is first shown. */
function View({ route }) {
  const [shown, setShown] = useState({ route: null });
  useEffect(() => {
    let live = true;
    route.load().then(
      (module) => live && setShown({ route, view: module.default }),
      () => live && setShown({ route, view: NotLoaded }),
    );
    return () => {
      live = false;
    };
  }, [route]);
  if (shown.route !== route) return html`<${Loading} />`;
  return html`<${shown.view} />`;
}

function NotHere({ can, route }) {
  if (route && !can(route.right)) {
    return html`<${Heading} title="You may not look at this" note="Your rights do not allow it in this namespace: sluice whoami shows them." />`;
  }
  return html`<${Heading} title="There is no such view" note="Choose one from the menu, or by Ctrl-K." />`;
}

function titleOf({ route, parameters, namespace }) {
  const what = Object.values(parameters)[0];
  return [what, route?.title, namespace !== 'default' && namespace, 'Sluice'].filter(Boolean).join(' · ');
}

function Console({ identity, place, show, signIn, onSignOut }) {
  const { namespace, route } = place;
  const known = useLoad((signal) => api.getOr({ namespaces: [] }, '/v1/namespaces', { signal }), []);
  // Without a place a right is needed at what the view shows.
  const can = useMemo(() => {
    const may = rightsIn(identity, namespace);
    return (right, at = route?.at ?? place.parameters) => may(right, at);
  }, [identity, place]);
  const names = new Set(['default', namespace, ...(known.data?.namespaces ?? []).map(({ name }) => name)]);
  const first = (name) => (ROUTES.find((one) => one.group !== undefined && rightsIn(identity, name)(one.right, one.at)) ?? ROUTES[0]).id;
  const app = { ...place, identity, can, show, signIn, namespaces: [...names].sort(), inNamespace: (name) => href(name, first(name)) };
  useEffect(() => {
    document.title = titleOf(place);
    // Who may not see the overview begins with what they may do.
    if (route === ROUTES[0] && !can(route.right) && first(namespace) !== route.id) go(app.inNamespace(namespace), { replace: true });
  }, [place]);
  return html`<${App.Provider} value=${app}>
    <${Shell} onSignOut=${onSignOut}>
      ${route && can(route.right)
        ? html`<${View} key=${`${namespace}${location.pathname}`} route=${route} />`
        : html`<${NotHere} can=${can} route=${route} />`}
    </${Shell}>
  </${App.Provider}>`;
}

function Root() {
  const [place, setPlace] = useState(current);
  const [who, setWho] = useState({});
  const [dialog, show] = useState(null);
  const take = (answer) => answer.then((identity) => setWho({ identity }), (error) => setWho({ error }));
  const ask = useCallback(() => take(api.get('/v1/whoami')), []);
  useEffect(() => {
    start(() => setPlace(current()));
    api.whenUnauthenticated(() => setWho({ error: { status: 401 } }));
    take(asked);
  }, []);
  const signIn = (token) => api.post('/console/session', { token }).then(ask, ask);
  const signOut = () => api.remove('/console/session').then(ask, ask);
  const content = () => {
    if (who.error?.status === 401) return html`<${SignIn} onSignedIn=${ask} />`;
    if (who.error) return html`<${Problem} error=${who.error} retry=${ask} />`;
    if (!who.identity) return html`<${Loading} />`;
    return html`<${Console} identity=${who.identity} place=${place} show=${show} signIn=${signIn} onSignOut=${signOut} />`;
  };
  // A dialog stays when its caller is no longer signed in: it may show what is shown once only.
  return html`${content()}<${ActionHost} dialog=${dialog} onClose=${() => show(null)} />`;
}

// Asked while the view is loaded, not one after the other.
const asked = api.get('/v1/whoami');
current().route?.load();

render(html`<${Root} />`, document.getElementById('app'));

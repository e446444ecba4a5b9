// What the caller may do, as `GET /v1/whoami` tells it: scopes (`sluice://ns/shop?perm=rw`) and rules of the
// policy (`rule "billing" (consumer)`). The server decides; this only leaves out what it would refuse.

const LOOK = ['observe', 'read'];
const RIGHTS = {
  producer: ['send'],
  w: ['send'],
  consumer: ['receive'],
  r: ['receive'],
  rw: ['send', 'receive', 'coordinate', 'read'],
  coordinator: ['coordinate', 'read'],
  observer: LOOK,
  operator: [...LOOK, 'operate'],
  admin: [...LOOK, 'operate', 'send', 'receive', 'coordinate', 'resolve'],
};
const ON_SERVER = { observer: ['observe-server'], operator: ['observe-server'], admin: ['observe-server', 'administrate'] };

function patternFits(pattern, namespace) {
  const escaped = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`).test(namespace);
}

function rightsOf(grant, namespace) {
  const scope = /^sluice:\/\/ns\/([^?]*)\?perm=(\w+)$/.exec(grant);
  if (scope) {
    const [, pattern, perm] = scope;
    const here = patternFits(pattern, namespace) ? RIGHTS[perm] ?? [] : [];
    return pattern === '*' ? [...here, ...(ON_SERVER[perm] ?? [])] : here;
  }
  // The description of a rule does not tell its namespaces: what its role allows somewhere is offered here.
  const role = /\((\w+)\)$/.exec(grant)?.[1];
  return [...(RIGHTS[role] ?? []), ...(ON_SERVER[role] ?? [])];
}

/** A function that tells whether this identity may use a right in this namespace. */
export function rightsIn(identity, namespace) {
  if (!identity.grants) return () => true;
  const rights = new Set(identity.grants.flatMap((grant) => rightsOf(grant, namespace)));
  return (right) => !right || rights.has(right);
}

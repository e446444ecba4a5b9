// What the caller may do, as `GET /v1/whoami` tells it. The server decides; this only leaves out what it would
// refuse.

/** The places of rights that concern all of a namespace, and the server with all namespaces. */
export const WHOLE = { queue: '*' };
export const SERVER = { namespace: '*', queue: '*', key: '*' };

/** The namespace that the server keeps for itself: administrators look at it, and nobody changes it. */
const KEPT = '$sys';

/** Whether a name fits one of the patterns; only a pattern that all names fit has room for the name `*`. */
function fits(patterns, name) {
  const escaped = (pattern) => pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return patterns.some((pattern) => new RegExp(`^${escaped(pattern).join('.*')}$`, 's').test(name));
}

/**
 * A function that tells whether this identity may use a right, or each of several: somewhere in this namespace,
 * or at a place, `{queue}` or `{key}` of it, `WHOLE` or `SERVER`. Who may send may propose, too.
 */
export function rightsIn(identity, namespace) {
  const has = (right, place) => (rule) =>
    (rule.may.includes(right) || (right === 'propose' && rule.may.includes('send'))) &&
    fits(rule.namespaces, place.namespace ?? namespace) &&
    ['queue', 'key'].every((kind) => place[kind] === undefined || fits(rule[`${kind}s`], place[kind]));
  const may = (right, place) => !identity.rights || identity.rights.some(has(right, place));
  const mayHere = (right, place) =>
    namespace === KEPT && !place.namespace ? ['observe', 'result'].includes(right) && may('admin', SERVER) : may(right, place);
  return (rights, place = {}) => [rights].flat().every((right) => !right || mayHere(right, place));
}

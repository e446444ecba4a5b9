// Latencies of calls, from the histograms of `GET /metrics`.

import { duration } from '../kit.js';

const LINE = /^sluice_http_request_seconds_(bucket|count)\{route="([^"]+)"(?:,le="([^"]+)")?\} (\d+)/gm;
const SHOWN = 8;
// Reading the metrics and waiting for messages says nothing of how fast the server answers.
const LEFT_OUT = new Set(['metrics', 'openapi', 'docs', 'healthz', 'readyz', 'none']);

const written = (seconds) => (seconds < 0.001 ? `${Math.round(seconds * 1e6)}µs` : duration(seconds * 1000));

/** The bound of the bucket in which this part of all requests has ended. */
function within({ buckets, count }, part) {
  const bucket = buckets.find(([, below]) => below >= count * part);
  return !bucket || bucket[0] === Infinity ? 'over a minute' : written(bucket[0]);
}

/** The calls made most often: `{route, count, p50, p99}`. */
export function latencies(metrics) {
  const routes = new Map();
  for (const [, kind, route, bound, value] of metrics.matchAll(LINE)) {
    if (LEFT_OUT.has(route)) continue;
    const one = routes.get(route) ?? { route, buckets: [], count: 0 };
    routes.set(route, one);
    if (kind === 'count') one.count = Number(value);
    else one.buckets.push([bound === '+Inf' ? Infinity : Number(bound), Number(value)]);
  }
  return [...routes.values()]
    .filter((one) => one.count > 0)
    .sort((a, b) => b.count - a.count)
    .slice(0, SHOWN)
    .map((one) => ({ route: one.route, count: one.count, p50: within(one, 0.5), p99: within(one, 0.99) }));
}

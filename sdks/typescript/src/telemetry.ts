import type * as OpenTelemetry from "@opentelemetry/api";

type Headers = Readonly<Record<string, string>>;

/** The package is there if the program has installed it. */
const api: typeof OpenTelemetry | undefined = await import("@opentelemetry/api").catch(() => undefined);

/** The headers that carry the trace of the caller, such as `traceparent`; none without OpenTelemetry. */
export function traceHeaders(): Headers {
  const headers: Record<string, string> = {};
  api?.propagation.inject(api.context.active(), headers);
  return headers;
}

/** Runs a function within the trace that the headers of a message carry. */
export function withTrace<T>(headers: Headers, run: () => T): T {
  if (api === undefined) return run();
  return api.context.with(api.propagation.extract(api.ROOT_CONTEXT, headers), run);
}

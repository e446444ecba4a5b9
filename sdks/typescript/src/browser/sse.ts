/** A server-sent event. */
export interface ServerEvent {
  /** Place in the stream; `undefined`: this event tells none. */
  id: string | undefined;
  /** Its type; empty: it only tells the place. */
  event: string;
  data: string;
}

/** The events of a stream, in order. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncIterable<ServerEvent> {
  let event: ServerEvent = empty();
  for await (const line of lines(body)) {
    if (line === "") {
      if (event.id !== undefined || event.data !== "") yield event;
      event = empty();
    } else {
      take(event, line);
    }
  }
}

function empty(): ServerEvent {
  return { id: undefined, event: "", data: "" };
}

/** Takes a line into an event; comments and unknown fields are nothing. */
function take(event: ServerEvent, line: string): void {
  const [, name, value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
  if (name === "id") event.id = value;
  if (name === "event") event.event = value;
  if (name === "data") event.data = event.data === "" ? value : `${event.data}\n${value}`;
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncIterable<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = `${rest}${decoder.decode(value, { stream: true })}`.split(/\r\n|\n|\r/);
      rest = parts.pop() as string;
      yield* parts;
    }
  } finally {
    // A reader that has heard enough lets the connection go.
    await reader.cancel().catch(() => undefined);
  }
}

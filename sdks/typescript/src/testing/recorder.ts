import type { MessageOptions, OutgoingMessage, Payload, Sender } from "../core/message.js";
import type { SendOptions, Sent, SentMany } from "../core/message.js";

/** A message that was recorded. */
export interface RecordedMessage extends OutgoingMessage {
  queue: string;
  id: string;
}

/** What a message must have: its fields, or a function that is true for it. */
export type Expected = Partial<OutgoingMessage> | ((message: RecordedMessage) => boolean);

/**
 * Takes the place of a client in tests of code that sends: it records the messages, and sends them on only if
 * it is given a client.
 *
 * @example
 * const recorder = new Recorder();
 * await signUp(recorder, "ann");
 * recorder.assertSent("mail", { payload: { to: "ann" } });
 */
export class Recorder implements Sender {
  /** What was sent, in order. */
  readonly sent: RecordedMessage[] = [];
  readonly #to: Sender | undefined;

  constructor(to?: Sender) {
    this.#to = to;
  }

  async send(queue: string, payload: Payload, options: MessageOptions & SendOptions = {}): Promise<Sent> {
    const { idempotencyKey, signal, ...message } = options;
    const sending: SendOptions = {};
    if (idempotencyKey !== undefined) sending.idempotencyKey = idempotencyKey;
    if (signal !== undefined) sending.signal = signal;
    const { ids, duplicate, duplicates } = await this.sendMany(queue, [{ ...message, payload }], sending);
    return { id: ids[0] as string, duplicate: duplicate || duplicates.length > 0 };
  }

  async sendMany(
    queue: string,
    messages: readonly OutgoingMessage[],
    options: SendOptions = {},
  ): Promise<SentMany> {
    const answer = (await this.#to?.sendMany(queue, messages, options)) ?? this.#answer(messages.length);
    messages.forEach((message, index) => {
      this.sent.push({ ...message, queue, id: answer.ids[index] as string });
    });
    return answer;
  }

  /** The messages of a queue that are as expected. */
  find(queue: string, expected: Expected = {}): RecordedMessage[] {
    const matches = typeof expected === "function" ? expected : (it: RecordedMessage) => has(it, expected);
    return this.sent.filter((message) => message.queue === queue && matches(message));
  }

  /** Fails unless a message as expected was sent to the queue; returns the first one. */
  assertSent(queue: string, expected: Expected = {}): RecordedMessage {
    const [first] = this.find(queue, expected);
    if (first !== undefined) return first;
    const what = typeof expected === "function" ? "that the function accepts" : text(expected);
    throw new Error(`no message ${what} was sent to ${queue}; sent were:\n${this.#list()}`);
  }

  /** Fails if anything was sent, or anything to the queue. */
  assertNothingSent(queue?: string): void {
    const found = this.sent.filter((message) => queue === undefined || message.queue === queue);
    if (found.length > 0) throw new Error(`nothing was to be sent; sent were:\n${this.#list()}`);
  }

  /** Forgets what was sent. */
  clear(): void {
    this.sent.length = 0;
  }

  #answer(count: number): SentMany {
    const ids = Array.from({ length: count }, (_, index) => `recorded-${this.sent.length + index}`);
    return { ids, duplicate: false, duplicates: [] };
  }

  #list(): string {
    const lines = this.sent.map(({ queue, ...message }) => `  ${queue}: ${text(message)}`);
    return lines.join("\n") || "  nothing";
  }
}

/** True if a value has what is expected: of objects the fields that are named, of lists all items. */
function has(value: unknown, expected: unknown): boolean {
  if (Object.is(value, expected)) return true;
  if (typeof value !== "object" || typeof expected !== "object" || !value || !expected) return false;
  if (Array.isArray(expected) && (!Array.isArray(value) || value.length !== expected.length)) return false;
  if (expected instanceof Date) return value instanceof Date && value.getTime() === expected.getTime();
  const fields = value as Record<string, unknown>;
  return Object.entries(expected).every(([name, part]) => has(fields[name], part));
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (part instanceof Uint8Array ? [...part] : part));
}

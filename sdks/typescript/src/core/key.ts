/** A text that nobody else can guess, by which a repeat of a call is known. */
export function randomKey(): string {
  return globalThis.crypto.randomUUID();
}

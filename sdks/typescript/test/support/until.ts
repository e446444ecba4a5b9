/** Waits until a look finds what is true; fails after a time. */
export async function until<T>(look: () => T | Promise<T>, withinMs = 10_000): Promise<T> {
  for (const end = performance.now() + withinMs; ; ) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`it has not become true: ${look}`);
    await pause(25);
  }
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The error with which something fails. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`it did not fail, but gave ${String(value)}`);
    },
    (error: unknown) => error,
  );
}

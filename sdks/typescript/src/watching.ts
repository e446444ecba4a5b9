import { isWorthRepeating, RETRY_DEFAULT, sleep, Tries } from "./core/retry.js";
import { SluiceError } from "./core/errors.js";

/**
 * What a stream tells, for as long as its reader reads: when it ends or breaks it is opened again, at once
 * the first time and then with growing delays.
 */
export async function* reopened<T>(
  open: () => AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncIterable<T> {
  let tries = new Tries(0, RETRY_DEFAULT);
  for (;;) {
    let error = new SluiceError("unreachable", "the stream has ended", { mayHaveTakenEffect: true });
    try {
      for await (const item of open()) {
        yield item;
        tries = new Tries(0, RETRY_DEFAULT);
      }
    } catch (thrown) {
      if (!(thrown instanceof SluiceError) || !isWorthRepeating(thrown, true)) throw thrown;
      error = thrown;
    }
    const delay = tries.next(error, true, false);
    if (delay === undefined) throw error;
    await sleep(delay, signal);
  }
}

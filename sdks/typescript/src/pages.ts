/** Asks for one page after another, until one says that it is the last. */
export async function* pages<T extends { next: string }>(
  ask: (after: string | undefined) => Promise<T>,
): AsyncIterable<T> {
  let after: string | undefined;
  do {
    const page = await ask(after);
    yield page;
    after = page.next;
  } while (after !== "");
}

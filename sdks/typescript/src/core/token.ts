import { SluiceError } from "./errors.js";

/** The token, if a header can carry it. The error does not show it. */
export function checkedToken<T extends string | undefined>(token: T): T {
  if (token !== undefined && !/^[ -~]*$/.test(token)) {
    throw new SluiceError("usage", "the token has characters that no token has");
  }
  return token;
}

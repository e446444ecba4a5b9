import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { SluiceError } from "./core/errors.js";

/** A named server of the command line. Files of credentials are paths. */
export interface Context {
  server: string;
  namespace: string | undefined;
  ca: string | undefined;
  cert: string | undefined;
  certKey: string | undefined;
  tokenFile: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;
type Table = Readonly<Record<string, unknown>>;

/** The context of this name, or the one in use; `undefined`: there is none in use. */
export function contextOf(name: string | undefined, env: Environment): Context | undefined {
  const path = pathOf(env);
  const file = path === undefined ? undefined : read(path);
  const contexts = tableOf(file?.contexts);
  const chosen = name ?? file?.current;
  if (chosen === undefined) return undefined;
  const context = contexts[String(chosen)];
  if (context === undefined) {
    const known = Object.keys(contexts).sort().join(", ") || "there are no contexts yet";
    throw new SluiceError("usage", `there is no context "${String(chosen)}": ${known}`);
  }
  return contextFrom(tableOf(context), path as string);
}

function contextFrom(table: Table, path: string): Context {
  const files = tableOf(table.credentials);
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const server = text(table.server);
  if (server === undefined) throw new SluiceError("usage", `${path}: a context has no server`);
  return {
    server,
    namespace: text(table.namespace),
    ca: text(files.ca),
    cert: text(files.cert),
    certKey: text(files.cert_key),
    tokenFile: text(files.token_file),
  };
}

/** The file that `sluice context` keeps; `undefined`: neither XDG_CONFIG_HOME nor HOME is set. */
function pathOf(env: Environment): string | undefined {
  const folder = env.XDG_CONFIG_HOME || (env.HOME && join(env.HOME, ".config"));
  return folder ? join(folder, "sluice", "contexts.toml") : undefined;
}

/** What the file says; `undefined`: there is none. */
function read(path: string): Table | undefined {
  try {
    return parse(readFileSync(path, "utf8"));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new SluiceError("usage", `cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

function tableOf(value: unknown): Table {
  return typeof value === "object" && value !== null ? (value as Table) : {};
}

/**
 * The one rule by which commands find their credential: a flag, then the environment, then a file. docs/scripts.md has it as a
 * table. It never prints a value, only where the value is from.
 */
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { DEV_VARS } from "./places.ts";
import { printable } from "./text/printable.ts";

/** A variable that has a credential. */
export type Name = "FANOUT_TOKEN" | "ADMIN_KEY" | "OPENAI_API_KEY";

export type Asked = {
  /** The variables that will do, best first. */
  names: readonly Name[];
  /** `--token-file`: a file that has the token or key and nothing else. */
  tokenFile?: string | undefined;
  /** `--env-file`, in order: the last one that has the name counts. */
  envFiles?: readonly string[] | undefined;
  /** Whether `.dev.vars` of the clone is read after them. Default true. */
  readsDevVars?: boolean;
};

export type Places = {
  env: Record<string, string | undefined>;
  /** The text of a file; null if it cannot be read. */
  read: (path: string) => string | null;
};

export type Credential = {
  value: string;
  name: Name | "--token-file";
  /** Where it was found, for people: a variable of the environment, a token file, or `ADMIN_KEY in .dev.vars`. */
  from: string;
  /** Whether it is the token of a run: a run token reads its own run, the operator's key names one. */
  isRunToken: boolean;
};

/** The text of a file; null if it cannot be read. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** What every key and token consists of. */
const VALUE = /^[\x21-\x7e]+$/;
const RUN_TOKEN = /^fo-run-/;

/** What to do for each name. */
const REMEDIES = {
  FANOUT_TOKEN: "FANOUT_TOKEN to a run's token (npm run token prints one; POST /runs returns one)",
  ADMIN_KEY: "ADMIN_KEY to the operator's key (npm start writes one to .dev.vars; openssl rand -hex 32 makes one)",
  OPENAI_API_KEY: "OPENAI_API_KEY, which is used with OPENAI_BASE_URL",
};

/**
 * The credential, or a sentence that says where it was looked for and what to do. `names`: the variables that will do, best first.
 */
export function findCredential(
  { names, tokenFile, envFiles = [], readsDevVars = true }: Asked,
  { env, read }: Places,
): Credential | string {
  if (tokenFile !== undefined) {
    const text = read(tokenFile);
    if (text === null) return `Cannot read the token file ${printable(tokenFile)}.`;
    return checked({ value: text.trim(), name: "--token-file", from: printable(tokenFile) });
  }
  for (const name of names) {
    const value = env[name]?.trim();
    if (value) return checked({ value, name, from: name });
  }
  // Of several files, the last one that has the name counts, as for `node --env-file`.
  const files = [...(readsDevVars ? [DEV_VARS] : []), ...envFiles].toReversed();
  for (const file of files) {
    const text = read(file);
    if (text === null && file !== DEV_VARS) return `Cannot read the env file ${printable(file)}.`;
    const values = parseEnv(text ?? "");
    for (const name of names) {
      const value = values[name]?.trim();
      if (value)
        return checked({ value, name, from: `${name} in ${file === DEV_VARS ? ".dev.vars" : printable(file)}` });
    }
  }
  return notFound(names, files);
}

function notFound(names: readonly Name[], files: readonly string[]) {
  const all = names.join(" or ");
  const places = ["the environment", ...files.map((file) => (file === DEV_VARS ? ".dev.vars" : printable(file)))];
  const only =
    names.length === 1 && names[0] === "ADMIN_KEY" ? " A run's token will not do: it sees its own run only." : "";
  const where = places.length === 1 ? `not set in ${places[0]}` : `set neither in ${places.join(" nor in ")}`;
  return `No credential: ${all} is ${where}. Set ${names.map((name) => REMEDIES[name]).join(", or ")}.${only}`;
}

function checked(found: Omit<Credential, "isRunToken">) {
  if (!VALUE.test(found.value))
    return `The credential from ${found.from} is empty or contains a character that no key or token has.`;
  const isRunToken = found.name === "--token-file" ? RUN_TOKEN.test(found.value) : found.name !== "ADMIN_KEY";
  return { ...found, isRunToken };
}

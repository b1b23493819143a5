/**
 * The one rule by which commands find their credential: a flag, then the environment, then a file. docs/scripts.md has it as a
 * table. It never prints a value, only where the value is from.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { printable } from "./text/printable.mjs";

/** The env file of a clone, into which `npm start` writes the operator's key. A package of the commands has none. */
export const DEV_VARS = fileURLToPath(new URL("../.dev.vars", import.meta.url));

/** The text of a file; null if it cannot be read. @param {string} path */
export function readText(path) {
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
 * @param {import("./credential.mjs").Asked} asked
 * @param {import("./credential.mjs").Places} places
 * @returns {import("./credential.mjs").Credential | string}
 */
export function findCredential({ names, tokenFile, envFiles = [], readsDevVars = true }, { env, read }) {
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

/** @param {readonly import("./credential.mjs").Name[]} names @param {readonly string[]} files */
function notFound(names, files) {
  const all = names.join(" or ");
  const places = ["the environment", ...files.map((file) => (file === DEV_VARS ? ".dev.vars" : printable(file)))];
  const only =
    names.length === 1 && names[0] === "ADMIN_KEY" ? " A run's token will not do: it sees its own run only." : "";
  const where = places.length === 1 ? `not set in ${places[0]}` : `set neither in ${places.join(" nor in ")}`;
  return `No credential: ${all} is ${where}. Set ${names.map((name) => REMEDIES[name]).join(", or ")}.${only}`;
}

/** @param {Omit<import("./credential.mjs").Credential, "isRunToken">} found */
function checked(found) {
  if (!VALUE.test(found.value))
    return `The credential from ${found.from} is empty or contains a character that no key or token has.`;
  const isRunToken = found.name === "--token-file" ? RUN_TOKEN.test(found.value) : found.name !== "ADMIN_KEY";
  return { ...found, isRunToken };
}

/** The settings of `npm run serve`, from the environment, and from env files for variables that the environment does not set. */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import { findCredential, readText } from "../../cli/credential.ts";
import { VARIABLES } from "../../src/env.ts";
import { ROOT } from "../root.ts";

/** `vars` contain secrets: never print them. */
export type ServeSetting = {
  host: string;
  port: number;
  /** Folder of the state, as it was named: relative to the project's folder. */
  dataDir: string;
  adminKey: string;
  /** The Worker's variables. */
  vars: Record<string, string>;
};

/** A reference to a secret inside a variable, as in `"api_key": "secret:OPENAI_API_KEY"`. */
const SECRET_REFERENCE = /secret:(\w+)/g;

/** The settings, or a sentence with what is wrong. Empty variables count as not set. */
export function serveSetting(
  environment: Record<string, string | undefined>,
  envFiles: readonly string[],
): ServeSetting | string {
  const files: Record<string, string | undefined> = {};
  for (const file of envFiles.map((name) => resolve(ROOT, name))) {
    if (!existsSync(file)) return `The env file ${file} does not exist.`;
    Object.assign(files, parseEnv(readFileSync(file, "utf8")));
  }
  const env = { ...files, ...withoutEmpty(environment) };
  // Of a server, nothing is read that its operator has not named: a clone's .dev.vars belongs to npm start.
  const asked = { names: ["ADMIN_KEY"], envFiles, readsDevVars: false } as const;
  const key = findCredential(asked, { env: environment, read: (file) => readText(resolve(ROOT, file)) });
  if (typeof key === "string") return key;
  const portText = env["PORT"] || "8787";
  const port = Number(portText);
  if (!/^\d+$/.test(portText) || port < 1 || port > 65_535) {
    return `PORT must be a number from 1 to 65535, not ${JSON.stringify(portText)}.`;
  }
  const dataDir = env["FANOUT_DATA"] || ".data";
  return {
    host: env["HOST"] || "127.0.0.1",
    port,
    dataDir,
    adminKey: key.value,
    vars: { ...varsIn(env), ADMIN_KEY: key.value },
  };
}

/** The gateway's own variables and the secrets that they refer to: nothing else of the environment reaches the Worker. */
function varsIn(env: Record<string, string | undefined>): Record<string, string> {
  const own = VARIABLES.map((name) => env[name] ?? "");
  const secrets = own.flatMap((text) => [...text.matchAll(SECRET_REFERENCE)].map(([, name = ""]) => name));
  const vars: Record<string, string> = {};
  for (const name of [...VARIABLES, ...secrets]) {
    const value = env[name];
    if (value) vars[name] = value;
  }
  return vars;
}

function withoutEmpty(env: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value));
}

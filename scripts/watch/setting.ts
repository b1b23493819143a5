/** The settings of `npm run watch`, from its arguments and the environment. */
import { parseArgs } from "node:util";
import { valueIn } from "../dev-vars.ts";
import type { Credential, Gateway } from "./gateway.ts";

const URL_DEFAULT = "http://127.0.0.1:8787";

export const USAGE = `Usage: npm run watch -- RUN_ID [--url ${URL_DEFAULT}] [--once] [--plain]

  RUN_ID   id of the run; optional if FANOUT_TOKEN is set
  --url    gateway; default: FANOUT_URL, or ${URL_DEFAULT}
  --once   print the current state and exit
  --plain  print one line per event and redraw nothing; the default if the output is not a terminal

The credential is FANOUT_TOKEN, or ADMIN_KEY, or the ADMIN_KEY in .dev.vars.`;

/** `runId` null: the run of the token. */
export type Setting = { gateway: Gateway; runId: string | null; once: boolean; plain: boolean };

type Surroundings = { env: Record<string, string | undefined>; devVars: string | null };

/** Returns a sentence if something is wrong. @param devVars Text of .dev.vars; null if it is missing. */
export function settingOf(args: readonly string[], { env, devVars }: Surroundings): Setting | string {
  const parsed = parse(args);
  if (typeof parsed === "string") return `${parsed}\n\n${USAGE}`;
  const { values, positionals } = parsed;
  if (positionals.length > 1) return `Expected one run id.\n\n${USAGE}`;
  const url = gatewayUrl(values.url ?? (env["FANOUT_URL"] || URL_DEFAULT));
  if (url === null) return "The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).";
  const credential = credentialOf(env, devVars);
  if (credential === null) {
    return "The credential is missing. Set FANOUT_TOKEN to the run's token, or ADMIN_KEY to the operator's key.";
  }
  if (!/^[\x21-\x7e]+$/.test(credential.value)) {
    return `The credential from ${credential.from} contains a character that no key or token has.`;
  }
  const runId = positionals[0] || null;
  if (runId === null && credential.from !== "FANOUT_TOKEN") return `The run id is missing.\n\n${USAGE}`;
  return { gateway: { url, credential }, runId, once: values.once, plain: values.plain };
}

function parse(args: readonly string[]) {
  const options = {
    url: { type: "string" },
    once: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function gatewayUrl(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

function credentialOf(env: Surroundings["env"], devVars: string | null): Credential | null {
  const token = env["FANOUT_TOKEN"]?.trim();
  if (token) return { value: token, from: "FANOUT_TOKEN" };
  const key = env["ADMIN_KEY"]?.trim();
  if (key) return { value: key, from: "ADMIN_KEY" };
  const local = valueIn(devVars ?? "", "ADMIN_KEY");
  return local === undefined ? null : { value: local, from: "ADMIN_KEY in .dev.vars" };
}

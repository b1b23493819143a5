/** The settings of `npm run watch`, from its arguments and the environment. */
import { parseArgs } from "node:util";
import { findCredential, type Places } from "../credential.ts";
import type { Gateway } from "./gateway.ts";

const URL_DEFAULT = "http://127.0.0.1:8787";

export const USAGE = `Usage: npm run watch -- RUN_ID [--url ${URL_DEFAULT}] [--token-file FILE] [--env-file FILE] [--once] [--plain] [--tree]

  RUN_ID   id of the run; optional with a run's token
  --url    gateway; default: FANOUT_URL, or ${URL_DEFAULT}
  --once   print the current state and exit
  --tree   show the runs below it as well
  --plain  print one line per event and redraw nothing; the default if the output is not a terminal

The credential is FANOUT_TOKEN, or ADMIN_KEY: from --token-file, else from the environment, else from --env-file or .dev.vars.`;

/** `runId` null: the run of the token. */
export type Setting = { gateway: Gateway; runId: string | null; once: boolean; plain: boolean; tree: boolean };

/** Returns a sentence if something is wrong. */
export function settingOf(args: readonly string[], places: Places): Setting | string {
  const parsed = parse(args);
  if (typeof parsed === "string") return `${parsed}\n\n${USAGE}`;
  const { values, positionals } = parsed;
  if (positionals.length > 1) return `Expected one run id.\n\n${USAGE}`;
  const url = gatewayUrl(values.url ?? (places.env["FANOUT_URL"] || URL_DEFAULT));
  if (url === null) return "The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).";
  const asked = { tokenFile: values["token-file"], envFiles: values["env-file"] };
  const credential = findCredential({ names: ["FANOUT_TOKEN", "ADMIN_KEY"], ...asked }, places);
  if (typeof credential === "string") return credential;
  const runId = positionals[0] || null;
  if (runId === null && !credential.isRunToken) return `The run id is missing.\n\n${USAGE}`;
  return { gateway: { url, credential }, runId, once: values.once, plain: values.plain, tree: values.tree };
}

function parse(args: readonly string[]) {
  const options = {
    url: { type: "string" },
    "token-file": { type: "string" },
    "env-file": { type: "string", multiple: true },
    once: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    tree: { type: "boolean", default: false },
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

/** The settings of `npm run token`, from its arguments and the environment: the run, the gateway and the key. */
import { parseArgs } from "node:util";
import { findCredential, type Places } from "../cli/credential.ts";

const PORT_DEFAULT = "8787";

export const USAGE = `Usage: eval "$(npm run -s token -- [--usd 0.10] [--calls N] [--parallel N] [--depth N] [--model NAME] [--name NAME])"

Opens a run and prints the shell command that sets FANOUT_URL and FANOUT_TOKEN.

  --usd        budget in USD; default 0.10 if no limit is given
  --calls      budget in calls
  --parallel   most calls in flight at once; default: the gateway's
  --depth      levels of child runs; default: the gateway's
  --model      default model of the run; default: the gateway's
  --name       name of the run
  --url        gateway; default: FANOUT_URL, or this machine at PORT or ${PORT_DEFAULT}
  --token-file file with the operator's key, and nothing else
  --env-file   file with ADMIN_KEY, if the environment has none; default: .dev.vars`;

export type TokenSetting = { url: string; adminKey: string; run: Record<string, unknown> };

/** Returns a sentence if something is wrong. */
export function tokenSetting(args: readonly string[], places: Places): TokenSetting | string {
  const values = parse(args);
  if (typeof values === "string") return `${values}\n\n${USAGE}`;
  const { env } = places;
  const port = env["PORT"] || PORT_DEFAULT;
  const url = gatewayUrl(values.url ?? (env["FANOUT_URL"] || `http://127.0.0.1:${port}`));
  if (url === null) return "The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).";
  const { usd, calls, parallel, depth, model, name } = values;
  const numbers = { usd, calls, parallel, depth };
  for (const [flag, text] of Object.entries(numbers)) {
    const isNumber = (flag === "usd" ? /^\d+(\.\d+)?$/ : /^\d+$/).test(text ?? "0");
    if (!isNumber) return `--${flag} must be a ${flag === "usd" ? "" : "whole "}number, not ${JSON.stringify(text)}.`;
  }
  const asked = { tokenFile: values["token-file"], envFiles: values["env-file"] };
  const key = findCredential({ names: ["ADMIN_KEY"], ...asked }, places);
  if (typeof key === "string") return key;
  const run = {
    budget: {
      ...(usd === undefined && calls !== undefined ? {} : { usd: Number(usd ?? "0.10") }),
      ...numeric({ calls }),
    },
    ...numeric({ max_parallel: parallel, max_depth: depth }),
    ...(model === undefined ? {} : { default_model: model }),
    ...(name === undefined ? {} : { name }),
  };
  return { url, adminKey: key.value, run };
}

/** The command with which a POSIX shell sets these variables. */
export function exportLine(values: Record<string, string>): string {
  const set = Object.entries(values).map(([name, value]) => `${name}=${shellWord(value)}`);
  return `export ${set.join(" ")}`;
}

/** The text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const numbers = { usd: text, calls: text, parallel: text, depth: text };
  const files = { "env-file": { ...text, multiple: true } } as const;
  const options = { ...numbers, ...files, model: text, name: text, url: text, "token-file": text };
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function gatewayUrl(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) return null;
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** The fields that are set, as numbers. */
function numeric(texts: Record<string, string | undefined>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [[name, Number(text)]])),
  );
}

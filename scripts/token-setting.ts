/** Which run to open, at which gateway, with whose key: the command line and the environment of `npm run token`. */
import { parseArgs } from "node:util";
import { valueIn } from "./dev-vars.ts";

const PORT_DEFAULT = "8787";

export const USAGE = `Usage: eval "$(npm run -s token -- [--usd 0.10] [--calls N] [--parallel N] [--depth N] [--model NAME] [--name NAME])"

Opens a run and prints the line that sets FANOUT_URL and FANOUT_TOKEN to it.

  --usd        what it may spend; 0.10 where no limit is named
  --calls      how many calls it may make
  --parallel   how many of them at once; else the gateway's default
  --depth      how deep its child runs may nest; else the gateway's default
  --model      its default model; else the gateway's
  --name       what it is called
  --url        the gateway; else FANOUT_URL, else this machine's at PORT, else at ${PORT_DEFAULT}
  --env-file   where ADMIN_KEY is, if not in the environment or in .dev.vars`;

export type TokenSetting = { url: string; adminKey: string; run: Record<string, unknown> };

type Surroundings = { env: Record<string, string | undefined>; read: (file: string) => string | null };

/** @param read Text of a file; null where there is none. Returns what is wrong as a sentence. */
export function tokenSetting(args: readonly string[], { env, read }: Surroundings): TokenSetting | string {
  const values = parse(args);
  if (typeof values === "string") return `${values}\n\n${USAGE}`;
  const port = env["PORT"] || PORT_DEFAULT;
  const url = gatewayUrl(values.url ?? (env["FANOUT_URL"] || `http://127.0.0.1:${port}`));
  if (url === null) return "The gateway's URL must begin with http:// or https:// (--url or FANOUT_URL).";
  const { usd, calls, parallel, depth, model, name } = values;
  const numbers = { usd, calls, parallel, depth };
  for (const [flag, text] of Object.entries(numbers)) {
    const isNumber = (flag === "usd" ? /^\d+(\.\d+)?$/ : /^\d+$/).test(text ?? "0");
    if (!isNumber) return `--${flag} must be a ${flag === "usd" ? "" : "whole "}number, not ${JSON.stringify(text)}.`;
  }
  const file = values["env-file"];
  const fileText = read(file ?? ".dev.vars");
  if (file !== undefined && fileText === null) return `There is no env file ${file}.`;
  const given = file === undefined ? env["ADMIN_KEY"]?.trim() : undefined;
  const adminKey = given || valueIn(fileText ?? "", "ADMIN_KEY");
  if (adminKey === undefined) return "There is no ADMIN_KEY. `npm start` writes one to .dev.vars, or set it here.";
  const run = {
    budget: {
      ...(usd === undefined && calls !== undefined ? {} : { usd: Number(usd ?? "0.10") }),
      ...numeric({ calls }),
    },
    ...numeric({ max_parallel: parallel, max_depth: depth }),
    ...(model === undefined ? {} : { default_model: model }),
    ...(name === undefined ? {} : { name }),
  };
  return { url, adminKey, run };
}

/** What a POSIX shell sets its variables by. */
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
  const options = { ...numbers, model: text, name: text, url: text, "env-file": text };
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

/** The fields that are there, as numbers. */
function numeric(texts: Record<string, string | undefined>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [[name, Number(text)]])),
  );
}

/** The settings of `npm run watch`, from its arguments and the environment. */
import { parseArgs } from "node:util";
import type { Places } from "../credential.ts";
import { Failure } from "../failure.ts";
import { GATEWAY_OPTIONS, gatewayOf, URL_DEFAULT, type Gateway } from "../gateway/requests.ts";

export const USAGE = `Usage: npm run watch -- RUN_ID [--url ${URL_DEFAULT}] [--token-file FILE] [--env-file FILE] [--once] [--plain] [--tree]

  RUN_ID   id of the run; optional with a run's token
  --url    gateway; default: FANOUT_URL, or ${URL_DEFAULT}
  --once   print the current state and exit
  --tree   show the runs below it as well
  --plain  print one line per event and redraw nothing; the default if the output is not a terminal

The credential is FANOUT_TOKEN, or ADMIN_KEY: from --token-file, else from the environment, else from --env-file or .dev.vars.`;

/** `runId` null: the run of the token. */
export type Setting = { gateway: Gateway; runId: string | null; once: boolean; plain: boolean; tree: boolean };

/** Throws what is wrong. */
export function settingOf(args: readonly string[], places: Places): Setting {
  const { values, positionals } = parse(args);
  if (positionals.length > 1) throw wrong("Expected one run id.");
  const gateway = gatewayOf(values, places, { operator: false });
  const runId = positionals[0] || null;
  if (runId === null && !gateway.credential.isRunToken) throw wrong("The run id is missing.");
  return { gateway, runId, once: values.once, plain: values.plain, tree: values.tree };
}

function wrong(message: string): Failure {
  return new Failure(`${message}\n\n${USAGE}`);
}

function parse(args: readonly string[]) {
  const options = {
    ...GATEWAY_OPTIONS,
    once: { type: "boolean", default: false },
    plain: { type: "boolean", default: false },
    tree: { type: "boolean", default: false },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error));
  }
}

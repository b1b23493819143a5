/**
 * `npm start`: starts the gateway on http://127.0.0.1:8787, without a provider key or an account.
 * The variables PORT and FANOUT_DATA (folder of the runs' state, default .data) apply; `--help` lists the flags.
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { findCredential, readText, type Credential } from "../cli/credential.ts";
import { DEV_VARS } from "../cli/places.ts";
import { ensureKeys, freshKeys } from "./dev-vars.ts";
import { unreachableApart, usabilityApart } from "./local/apart.ts";
import { startLocalGateway, type LocalGateway } from "./local/gateway.ts";
import { StopSignal } from "./local/stop-signal.ts";
import { tryPort } from "./port.ts";
import { withoutTokens } from "./redact-tokens.ts";
import { ROOT } from "./root.ts";
import { shellWord } from "./token-setting.ts";

const PORT_DEFAULT = "8787";

const HELP = `npm start [-- flags]
  --port N          port; default PORT, or ${PORT_DEFAULT}
  --ip HOST         address to listen on; default 127.0.0.1
  --persist-to DIR  folder of the runs' state; default FANOUT_DATA, or .data
  --env-file FILE   variables that override those in .dev.vars; can be repeated
ADMIN_KEY is the environment's, else that of an env file, else that of .dev.vars, into which a new one is written.
To follow edits of the source, use: npx wrangler dev --persist-to .data`;

process.exitCode = await main();

async function main(): Promise<number> {
  const flags = flagsOf(process.argv.slice(2));
  if (typeof flags === "string") return fail(flags);
  if (flags.help) {
    console.log(HELP);
    return 0;
  }
  const host = flags.ip ?? "127.0.0.1";
  const portText = flags.port ?? (process.env["PORT"] || PORT_DEFAULT);
  const port = Number(portText);
  if (!/^\d+$/.test(portText) || port < 1 || port > 65_535) {
    return fail(`PORT must be a number from 1 to 65535, not ${JSON.stringify(portText)}.`);
  }
  const taken = await tryPort(port, host);
  if ("refused" in taken) return fail(portMessage(port, host, taken.refused));

  const given = (flags["env-file"] ?? []).map((file) => resolve(ROOT, file));
  const missing = given.find((file) => !existsSync(file));
  if (missing !== undefined) return fail(`The env file ${missing} does not exist.`);
  const asked = { names: ["ADMIN_KEY"], envFiles: given } as const;
  const places = { env: process.env, read: readText };
  if (typeof findCredential(asked, places) === "string" && ensureKeys(DEV_VARS, freshKeys())) {
    console.log("Wrote a new ADMIN_KEY and a SIGNING_KEY to .dev.vars, which git ignores.");
  }
  const key = findCredential(asked, places);
  if (typeof key === "string") return fail(key);
  const dataDir = resolve(ROOT, flags["persist-to"] ?? (process.env["FANOUT_DATA"] || ".data"));
  const envFiles = [...(existsSync(DEV_VARS) ? [DEV_VARS] : []), ...given];
  return await serve({ host, port, dataDir, envFiles, given, key });
}

type Serving = {
  host: string;
  port: number;
  dataDir: string;
  envFiles: readonly string[];
  /** The env files that flags have named. */
  given: readonly string[];
  /** The operator's key. */
  key: Credential;
};

/** Serves until a signal arrives; resolves with the exit status, 128 + the signal's number. */
async function serve({ host, port, dataDir, envFiles, given, key }: Serving): Promise<number> {
  const stopSignal = new StopSignal();
  const log = (line: string): void => console.error(withoutTokens(line));
  const adminKey = key.value;
  const setting = { envFiles, vars: { ADMIN_KEY: adminKey } };
  const unreachable = unreachableApart(setting);
  let gateway: LocalGateway;
  try {
    gateway = await startLocalGateway(setting, { host, port, dataDir, log });
  } catch (error) {
    return fail(`The gateway did not start:\n${error instanceof Error ? error.message : String(error)}`);
  }
  const { problem, warnings } = await usabilityApart({ url: gateway.url, adminKey });
  if (problem !== null) {
    await gateway.stop();
    return fail(`The gateway is not usable: ${problem}`);
  }
  for (const warning of [...warnings, ...(await unreachable)]) console.error(`Warning: ${warning}.`);
  const isDefault = gateway.url === `http://127.0.0.1:${PORT_DEFAULT}`;
  const tokenFlags = [
    ...(isDefault ? [] : ["--url", gateway.url]),
    ...given.flatMap((file) => ["--env-file", shellWord(file)]),
  ];
  console.log(nextSteps(gateway.url, tokenFlags, key.from));
  return await stopSignal.stopped(gateway);
}

function flagsOf(args: string[]) {
  const text = { type: "string" } as const;
  const options = {
    help: { type: "boolean", short: "h" },
    ip: text,
    port: text,
    "persist-to": text,
    "env-file": { ...text, multiple: true },
  } as const;
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    return `${error instanceof Error ? error.message : String(error)}\n${HELP}`;
  }
}

function portMessage(port: number, host: string, code: string): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is in use. Stop the program that listens on it, or use another port: PORT=8788 npm start`;
  return `Cannot listen on ${host}:${port}: ${code}.`;
}

/** @param tokenFlags Flags that `npm run token` needs for this gateway. @param keyFrom Where the operator's key is. */
function nextSteps(url: string, tokenFlags: readonly string[], keyFrom: string): string {
  const flags = tokenFlags.length === 0 ? "" : ` -- ${tokenFlags.join(" ")}`;
  const json = `-H 'content-type: application/json'`;
  return `
fanout is ready at ${url}. In another terminal, in this folder:

Open a run:   eval "$(npm run -s token${flags})"   # budget $0.10; sets FANOUT_URL and FANOUT_TOKEN
Send a batch: curl -s $FANOUT_URL/batch -H "authorization: Bearer $FANOUT_TOKEN" ${json} -d '{"prompts":["one","two","three"]}'
Python stub:  curl -s $FANOUT_URL/stubs/python -o fanout.py
See the runs: ${url}/ui   # with ${keyFrom}
`;
}

function fail(message: string): number {
  console.error(message);
  return 1;
}

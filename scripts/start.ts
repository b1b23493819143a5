/**
 * `npm start`: the gateway on http://127.0.0.1:8787, without a key or an account.
 * PORT and FANOUT_DATA (folder of the runs' state, default .data) are honoured; flags go on to `wrangler dev`.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ensureAdminKey, valueIn } from "./dev-vars.ts";
import { flagValues, unlessGiven } from "./flags.ts";
import { launch } from "./launch.ts";
import { tryPort } from "./port.ts";
import { shellWord } from "./token-setting.ts";
import { ROOT, type Wrangler } from "./wrangler.ts";

const DEV_VARS = join(ROOT, ".dev.vars");
const PORT_DEFAULT = "8787";
const passed = process.argv.slice(2);

process.exitCode = await main();

async function main(): Promise<number> {
  const host = flagValues(passed, "ip").at(-1) ?? "127.0.0.1";
  const portText = flagValues(passed, "port").at(-1) ?? (process.env["PORT"] || PORT_DEFAULT);
  const port = Number(portText);
  if (!/^\d+$/.test(portText) || port < 1 || port > 65_535) {
    return fail(`PORT must be a number from 1 to 65535, not ${JSON.stringify(portText)}.`);
  }
  const taken = await tryPort(port, host);
  if ("refused" in taken) return fail(portMessage(port, host, taken.refused));

  const given = flagValues(passed, "env-file").map((file) => resolve(ROOT, file));
  const absent = given.find((file) => !existsSync(file));
  if (absent !== undefined) return fail(`There is no env file ${absent}.`);
  if (!given.some(hasAdminKey) && ensureAdminKey(DEV_VARS, randomBytes(24).toString("base64url"))) {
    console.log("Wrote a fresh ADMIN_KEY to .dev.vars, which git ignores.");
  }
  // The last file that names a key wins.
  const keyFile = given.findLast(hasAdminKey) ?? DEV_VARS;
  const adminKey = adminKeyIn(keyFile) ?? "";

  const data = resolve(ROOT, process.env["FANOUT_DATA"] || ".data");
  const args = [
    ...unlessGiven(passed, "ip", host),
    ...unlessGiven(passed, "port", portText),
    ...unlessGiven(passed, "persist-to", data),
    // Given an env file, wrangler no longer reads .dev.vars by itself. Later files win.
    ...(given.length > 0 && existsSync(DEV_VARS) ? ["--env-file", DEV_VARS] : []),
    ...passed,
  ];
  const url = `http://${host === "0.0.0.0" ? "127.0.0.1" : host}:${port}`;
  let running: Wrangler | null = null;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void running?.stop(signal));
  const onStart = (started: Wrangler) => void (running = started);
  const { wrangler, readiness } = await launch({ args, url, adminKey, onStart });
  if (wrangler.stopping()) return wrangler.exited;
  if (!readiness.ready) {
    await wrangler.stop();
    return fail(readiness.message);
  }
  const isDefault = url === `http://127.0.0.1:${PORT_DEFAULT}`;
  const flags = [
    ...(isDefault ? [] : ["--url", url]),
    ...(keyFile === DEV_VARS ? [] : ["--env-file", shellWord(keyFile)]),
  ];
  console.log(nextSteps(url, flags));
  wrangler.show();
  return wrangler.exited;
}

function hasAdminKey(file: string): boolean {
  return adminKeyIn(file) !== undefined;
}

function adminKeyIn(file: string): string | undefined {
  return valueIn(readFileSync(file, "utf8"), "ADMIN_KEY");
}

function portMessage(port: number, host: string, code: string): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is in use. Stop what listens there, or take another: PORT=8788 npm start`;
  return `Cannot listen on ${host}:${port}: ${code}.`;
}

/** @param flags What `npm run token` must be told to find this gateway. */
function nextSteps(url: string, flags: readonly string[]): string {
  const told = flags.length === 0 ? "" : ` -- ${flags.join(" ")}`;
  const json = `-H 'content-type: application/json'`;
  return `
fanout is ready at ${url}. In another terminal, in this folder:

Open a run:   eval "$(npm run -s token${told})"   # of ten cents; sets FANOUT_URL and FANOUT_TOKEN
Ask a batch:  curl -s $FANOUT_URL/batch -H "authorization: Bearer $FANOUT_TOKEN" ${json} -d '{"prompts":["one","two","three"]}'
Python stub:  curl -s $FANOUT_URL/stubs/python -o fanout.py
`;
}

function fail(message: string): number {
  console.error(message);
  return 1;
}

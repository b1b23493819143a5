/**
 * `npm start`: the gateway on http://127.0.0.1:8787, without a key or an account.
 * PORT and FANOUT_DATA (folder of the runs' state, default .data) are honoured; flags go on to `wrangler dev`.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { ensureAdminKey, valueIn } from "./dev-vars.ts";
import { flagValues, unlessGiven } from "./flags.ts";
import { launch } from "./launch.ts";
import { tryPort } from "./port.ts";
import { ROOT, type Wrangler } from "./wrangler.ts";

const DEV_VARS = join(ROOT, ".dev.vars");
const passed = process.argv.slice(2);

process.exitCode = await main();

async function main(): Promise<number> {
  const host = flagValues(passed, "ip").at(-1) ?? "127.0.0.1";
  const portText = flagValues(passed, "port").at(-1) ?? (process.env["PORT"] || "8787");
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
  console.log(nextSteps(url, relative(process.cwd(), keyFile)));
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

function nextSteps(url: string, keyFile: string): string {
  const key = `$(sed -n 's/^ADMIN_KEY=//p' ${keyFile} | tr -d \\"\\')`;
  const json = `-H 'content-type: application/json'`;
  return `
fanout is ready at ${url}

Open a run:   TOKEN=$(curl -s ${url}/runs -H "authorization: Bearer ${key}" ${json} -d '{"budget":{"usd":0.10}}' | sed -n 's/.*"token" *: *"\\([^"]*\\)".*/\\1/p')
Ask a batch:  curl -s ${url}/batch -H "authorization: Bearer $TOKEN" ${json} -d '{"prompts":["one","two","three"]}'
Python stub:  curl -s ${url}/stubs/python -o fanout.py   (then FANOUT_URL=${url} FANOUT_TOKEN=$TOKEN python3 …)
`;
}

function fail(message: string): number {
  console.error(message);
  return 1;
}

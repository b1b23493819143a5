/**
 * `npm start` and `npx wrangler dev --persist-to` store runs in the same layout, so each continues with what the other has
 * stored: a run and its results are read, and the run goes on, under the other program and back under the first.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { startLocalGateway } from "../../scripts/local/gateway.ts";
import { tryPort } from "../../scripts/port.ts";
import { ROOT } from "../../scripts/root.ts";
import { openRun, send } from "../support/gateway.ts";

const ADMIN_KEY = "operator-key-of-these-tests-0123";
const batch = z.looseObject({ id: z.string(), results: z.array(z.string()) });
const stored = z.looseObject({ id: z.string() });
const spent = z.looseObject({ calls: z.looseObject({ spent: z.number() }) });

let folder = "";
const running = new Set<ChildProcess>();
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-shared-"))));
afterAll(() => {
  for (const child of running) if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

type Program = { url: string; stop: () => Promise<void> };

async function npmStart(): Promise<Program> {
  const options = { host: "127.0.0.1", port: 0, dataDir: join(folder, "data"), log: (): void => undefined };
  return await startLocalGateway({ vars: { ADMIN_KEY } }, options);
}

async function wranglerDev(): Promise<Program> {
  const free = await tryPort(0, "127.0.0.1");
  if ("refused" in free) throw new Error(free.refused);
  const envFile = join(folder, "env");
  writeFileSync(envFile, `ADMIN_KEY=${ADMIN_KEY}\n`);
  const where = [`--port=${free.port}`, "--ip=127.0.0.1", "--inspector-port=0", "--show-interactive-dev-session=false"];
  const flags = [`--persist-to=${join(folder, "data")}`, `--env-file=${envFile}`, ...where];
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", WRANGLER_REGISTRY_PATH: join(folder, "dev") };
  // A process group of its own: wrangler starts workerd, and both must end.
  const child = spawn("npx", ["wrangler", "dev", ...flags], { cwd: ROOT, env, detached: true });
  running.add(child);
  for (const stream of [child.stdout, child.stderr]) stream?.resume();
  const ended = once(child, "close").then(() => running.delete(child));
  const url = `http://127.0.0.1:${free.port}`;
  const answers = (): Promise<boolean> =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(answers, { timeout: 90_000, interval: 200 }).toBe(true);
  return {
    url,
    stop: async () => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
      await ended;
    },
  };
}

/** Runs `use` with the program, which ends before the next one may use the folder. */
async function under<T>(program: () => Promise<Program>, use: (url: string) => Promise<T>): Promise<T> {
  const { url, stop } = await program();
  try {
    return await use(url);
  } finally {
    await stop();
  }
}

it("continues a run of one program under the other, and back", { tags: ["slow"] }, async () => {
  type Opened = { token: string; groups: { id: string; results: string[] }[]; files: string[] };
  /** Sends a batch, and reads every batch so far. */
  const goOn = async (url: string, { token, groups, files }: Opened, prompts: string[]): Promise<Opened> => {
    const { id, results } = batch.parse(await (await send(`${url}/batch`, { token, json: { prompts } })).json());
    expect(results).toEqual(prompts);
    const all = [...groups, { id, results }];
    for (const known of all) {
      expect(await (await send(`${url}/groups/${known.id}`, { token })).json()).toMatchObject(known);
    }
    const calls = all.reduce((sum, each) => sum + each.results.length, 0);
    expect(spent.parse(await (await send(`${url}/budget`, { token })).json()).calls.spent).toBe(calls);
    // Files are in a bucket.
    const form = new FormData();
    form.set("purpose", "user_data");
    form.set("file", new Blob([`file ${files.length}`]), "a.txt");
    const file = stored.parse(await (await send(`${url}/v1/files`, { token, method: "POST", body: form })).json()).id;
    for (const [at, each] of [...files, file].entries()) {
      expect(await (await send(`${url}/v1/files/${each}/content`, { token })).text()).toBe(`file ${at}`);
    }
    return { token, groups: all, files: [...files, file] };
  };
  const first = await under(npmStart, async (url) => {
    const { token } = await openRun(url, ADMIN_KEY, { budget: { usd: 1, calls: 100 } });
    return await goOn(url, { token, groups: [], files: [] }, ["one", "two", "three"]);
  });
  const second = await under(wranglerDev, (url) => goOn(url, first, ["four", "five"]));
  await under(npmStart, (url) => goOn(url, second, ["six"]));
});

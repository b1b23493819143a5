/** `npm run serve` on a server: what it reads, how it stops, who may use its folder, and the image that runs it. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { tryPort } from "../../scripts/port.ts";
import { ROOT } from "../../scripts/root.ts";

const ADMIN_KEY = "operator-key-of-these-tests-0123";
let folder = "";
let children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fanout-serve-"));
  children = [];
});
afterEach(async () => {
  for (const child of children) if (child.exitCode === null) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A program that was started, and what it has printed so far. */
class Served {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  printed = "";

  constructor(command: readonly string[], { cwd, env }: { cwd: string; env: Record<string, string> }) {
    const [program = "", ...args] = command;
    this.child = spawn(program, args, { cwd, env: { PATH: process.env["PATH"] ?? "", ...env } });
    children.push(this.child);
    const read = (piece: Buffer): void => void (this.printed += piece.toString());
    this.child.stdout?.on("data", read);
    this.child.stderr?.on("data", read);
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
  }

  async prints(text: string): Promise<void> {
    await expect.poll(() => this.printed, { timeout: 60_000 }).toContain(text);
  }
}

async function setting(): Promise<{ url: string; env: Record<string, string> }> {
  const free = await tryPort(0, "127.0.0.1");
  if ("refused" in free) throw new Error(free.refused);
  const env = { ADMIN_KEY, PORT: String(free.port), FANOUT_DATA: join(folder, "data") };
  return { url: `http://127.0.0.1:${free.port}`, env };
}

async function post(url: string, key: string, body: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return reply.json();
}

async function openRun(url: string): Promise<string> {
  return z.object({ token: z.string() }).parse(await post(`${url}/runs`, ADMIN_KEY, { budget: { usd: 1 } })).token;
}

describe("npm run serve", () => {
  it("answers requests in flight when npm is stopped, and unlocks the folder", { tags: ["slow"] }, async () => {
    const { url, env } = await setting();
    const served = new Served(["npm", "run", "-s", "serve"], { cwd: ROOT, env });
    await served.prints("fanout is ready");
    const token = await openRun(url);
    const answer = post(`${url}/batch`, token, { prompts: ["one", "two"], model: "sim/echo?ms=4000" });
    // The upstream has both calls as soon as the budget shows them.
    const headers = { authorization: `Bearer ${token}` };
    const reserved = z.object({ calls: z.object({ reserved: z.number() }) });
    const inFlight = async (): Promise<number> =>
      reserved.parse(await (await fetch(`${url}/budget`, { headers })).json()).calls.reserved;
    await expect.poll(inFlight, { timeout: 60_000, interval: 20 }).toBe(2);
    served.child.kill("SIGTERM");
    expect(await answer).toMatchObject({ status: "completed", results: ["one", "two"] });
    await served.ended;
    await expect.poll(() => existsSync(join(folder, "data", "gateway.pid")), { timeout: 60_000 }).toBe(false);
    await expect.poll(async () => "port" in (await tryPort(Number(env["PORT"]), "127.0.0.1"))).toBe(true);
  });

  it(
    "refuses a folder that another gateway uses, and finds its runs there after a kill",
    { tags: ["slow"] },
    async () => {
      const { url, env } = await setting();
      const first = new Served(["node", "scripts/lean.mjs", "serve.ts"], { cwd: ROOT, env });
      await first.prints("fanout is ready");
      const token = await openRun(url);
      const other = await setting();
      const second = new Served(["node", "scripts/lean.mjs", "serve.ts"], { cwd: ROOT, env: other.env });
      expect(await second.ended).toBe(1);
      expect(second.printed).toContain(`Process ${first.child.pid} runs a gateway on`);
      first.child.kill("SIGKILL");
      await first.ended;
      const third = new Served(["node", "scripts/lean.mjs", "serve.ts"], { cwd: ROOT, env: other.env });
      await third.prints("fanout is ready");
      expect(await post(`${other.url}/query`, token, { prompt: "abc", model: "sim/echo" })).toMatchObject({
        text: "abc",
      });
      third.child.kill("SIGTERM");
      expect(await third.ended).toBe(143);
    },
  );

  it(
    "takes its workerd with it when it is killed, so that no second one works on the folder",
    { tags: ["slow"] },
    async () => {
      const { env } = await setting();
      const served = new Served(["node", "scripts/lean.mjs", "serve.ts"], { cwd: ROOT, env });
      await served.prints("fanout is ready");
      const runtimes = childrenOf(served.child.pid);
      expect(runtimes).not.toEqual([]);
      served.child.kill("SIGKILL");
      await served.ended;
      await expect.poll(() => runtimes.filter(isAlive), { timeout: 60_000 }).toEqual([]);
    },
  );

  it.each([
    ["without an ADMIN_KEY", { ADMIN_KEY: "" }, "ADMIN_KEY is not set in the environment."],
    ["with a configuration that cannot work", { UPSTREAMS: `{"a":{"kind":"imaginary"}}` }, "UPSTREAMS.a.kind"],
  ])("ends with the reason %s", { tags: ["slow"] }, async (_, wrong, reason) => {
    const { env } = await setting();
    const served = new Served(["node", "scripts/lean.mjs", "serve.ts"], { cwd: ROOT, env: { ...env, ...wrong } });
    expect(await served.ended).toBe(1);
    expect(served.printed).toContain(reason);
  });
});

/** The ids of the processes that a process has started. */
function childrenOf(parent = 0): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "ppid=,pid="], { encoding: "utf8" });
  const pairs = stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.flatMap(([ppid, pid]) => (ppid === parent && pid !== undefined ? [pid] : []));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("the image", () => {
  const instructions = readFileSync(join(ROOT, "Dockerfile"), "utf8")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => /^([A-Z]+) (.*)$/.exec(line))
    .flatMap((match) => (match === null ? [] : [{ name: match[1] ?? "", value: match[2] ?? "" }]));
  const valuesOf = (name: string): string[] => instructions.flatMap((each) => (each.name === name ? [each.value] : []));

  it(
    "copies all that the gateway needs, listens on its documented port, and passes its own health check",
    { tags: ["slow"] },
    async () => {
      const app = join(folder, "app");
      mkdirSync(app);
      for (const copied of valuesOf("COPY")) {
        const names = copied.split(" ").slice(0, -1);
        for (const name of names) cpSync(join(ROOT, name), join(app, name), { recursive: true });
      }
      // `npm ci` of this lock file is what has installed the checkout.
      symlinkSync(join(ROOT, "node_modules"), join(app, "node_modules"));
      const { url, env } = await setting();
      const fixed = Object.fromEntries(
        valuesOf("ENV").flatMap((line) => line.split(" ").map((pair) => pair.split("=").slice(0, 2))),
      );
      expect(fixed).toMatchObject({ HOST: "0.0.0.0", FANOUT_DATA: "/data" });
      const [command = "[]"] = valuesOf("CMD");
      const served = new Served(z.array(z.string()).parse(JSON.parse(command)), {
        cwd: app,
        env: { ...fixed, ...env },
      });
      await served.prints("fanout is ready");
      expect((await fetch(`${url}/health`)).status).toBe(200);
      const [, check = "[]"] = /CMD (\[.*\])$/.exec(valuesOf("HEALTHCHECK")[0] ?? "") ?? [];
      const healthy = new Served(z.array(z.string()).parse(JSON.parse(check)), { cwd: app, env });
      expect(await healthy.ended).toBe(0);
      served.child.kill("SIGTERM");
      expect(await served.ended).toBe(143);
      const unhealthy = new Served(z.array(z.string()).parse(JSON.parse(check)), { cwd: app, env });
      expect(await unhealthy.ended).toBe(1);
    },
  );

  it("receives only the files that it copies", () => {
    const ignored = readFileSync(join(ROOT, ".dockerignore"), "utf8").trim().split("\n");
    const copied = valuesOf("COPY").flatMap((line) => line.split(" ").slice(0, -1));
    expect(ignored.toSorted()).toEqual(["*", ...copied.map((name) => `!${name}`)].toSorted());
    expect(readdirSync(ROOT)).toContain("Dockerfile");
  });
});

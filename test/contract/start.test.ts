/** `npm start` as a person meets it: what it prints works, what is wrong is said, nothing stays behind. */
import type { ChildProcess } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { tryPort } from "../../scripts/port.ts";
import { sendJson, startScriptedGateway } from "../support/scripted-gateway.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

describe("npm start", () => {
  let folder = "";
  let child: ChildProcess | null = null;
  let childEnded: Promise<unknown> = Promise.resolve();
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-start-"))));
  afterEach(async () => {
    if (child?.exitCode === null) child.kill("SIGTERM");
    await childEnded;
    rmSync(folder, { recursive: true, force: true });
  });

  it("names npm ci in a clone without packages, whatever Node is there", () => {
    mkdirSync(join(folder, "scripts"));
    for (const file of ["package.json", "scripts/installed.mjs", "scripts/start.ts", "scripts/demo.ts"]) {
      copyFileSync(join(ROOT, file), join(folder, file));
    }
    for (const command of [["start"], ["run", "demo"]]) {
      const { status, stderr } = spawnSync("npm", command, { cwd: folder, encoding: "utf8" });
      expect([status, stderr]).toEqual([1, expect.stringContaining("Run `npm ci` first")]);
    }
  });

  /** Starts the script with an env file of the test's own, so that it touches no .dev.vars. */
  function start(vars: Record<string, string>, env: Record<string, string>) {
    const envFile = join(folder, "env");
    const lines = Object.entries({ ADMIN_KEY: "operator-key-of-these-tests-0123", ...vars }).map(
      ([name, value]) => `${name}='${value}'\n`,
    );
    writeFileSync(envFile, lines.join(""));
    const started = spawn("node", ["--", "scripts/lean.mjs", "start.ts", "--env-file", envFile], {
      cwd: ROOT,
      env: { ...process.env, FANOUT_DATA: join(folder, "data"), WRANGLER_REGISTRY_PATH: join(folder, "dev"), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    child = started;
    let printed = "";
    const waiting: { text: string; resolve: () => void }[] = [];
    const read = (piece: string) => {
      printed += piece;
      for (const { text, resolve } of waiting) if (printed.includes(text)) resolve();
    };
    started.stdout.setEncoding("utf8").on("data", read);
    started.stderr.setEncoding("utf8").on("data", read);
    const ended = new Promise<number | null>((resolve) => started.once("close", (code) => resolve(code)));
    childEnded = ended;
    const says = (text: string) =>
      Promise.race([
        new Promise<void>((resolve) => waiting.push({ text, resolve })),
        ended.then((code) => Promise.reject(new Error(`ended with ${code}: ${printed}`))),
      ]);
    return { ended, says, printed: () => printed };
  }

  it(
    "prints commands that open a run and send a batch, and leaves nothing listening when it is stopped",
    { tags: ["slow"] },
    async () => {
      const port = await freePort();
      const gateway = start({}, { PORT: String(port) });
      await gateway.says("Python stub:");
      const commands = ["Open a run:", "Send a batch:"].map((label) => lineAfter(label, gateway.printed()));
      const shell = spawnSync("sh", ["-c", commands.join("\n")], { cwd: ROOT, encoding: "utf8" });
      expect(JSON.parse(shell.stdout)).toMatchObject({ status: "completed", results: ["one", "two", "three"] });

      child?.kill("SIGTERM");
      expect(await gateway.ended).toBe(143);
      expect(await tryPort(port, "127.0.0.1")).toEqual({ port });
    },
  );

  it("ends with the gateway's error message when the configuration is wrong", { tags: ["slow"] }, async () => {
    const gateway = start({ UPSTREAMS: `{"sim":{"kind":"imaginary"}}` }, { PORT: String(await freePort()) });
    expect(await gateway.ended).toBe(1);
    expect(gateway.printed()).toMatch(/UPSTREAMS\.sim\.kind/);
  });

  it("reports that the port is in use and how to choose another", { tags: ["slow"] }, async () => {
    const other = await startScriptedGateway((_, reply) => sendJson(reply, 200, {}));
    const port = new URL(other.url).port;
    const gateway = start({}, { PORT: port });
    expect(await gateway.ended).toBe(1);
    expect(gateway.printed()).toContain(`Port ${port} is in use.`);
    await other.stop();
  });

  it("names each upstream whose base_url leads nowhere, and why", { tags: ["slow"] }, async () => {
    const closedPort = await freePort();
    const listening = createServer().listen(0, "127.0.0.1");
    await once(listening, "listening");
    const openPort = (listening.address() as AddressInfo).port;
    const upstream = (base_url: string) => ({ kind: "openai", base_url, prices: { "*": { input: 1, output: 1 } } });
    const UPSTREAMS = JSON.stringify({
      works: upstream(`http://127.0.0.1:${openPort}/v1`),
      closed: upstream(`http://127.0.0.1:${closedPort}/v1`),
      nameless: upstream("http://no-such-host.invalid/v1"),
    });
    const gateway = start({ UPSTREAMS }, { PORT: String(await freePort()) });
    await gateway.says("is ready at");
    listening.close();
    const printed = gateway.printed();
    expect(printed).toContain(
      `closed cannot be reached at its base_url http://127.0.0.1:${closedPort}/v1: nothing listens`,
    );
    expect(printed).toContain(
      "nameless cannot be reached at its base_url http://no-such-host.invalid/v1: its host name",
    );
    expect(printed).not.toContain("works cannot");
  });

  it.each(["0", "65536", "eighty"])("refuses PORT=%s and names the variable", { tags: ["slow"] }, async (port) => {
    const gateway = start({}, { PORT: port });
    expect(await gateway.ended).toBe(1);
    expect(gateway.printed()).toContain(`PORT must be a number from 1 to 65535, not "${port}".`);
  });
});

async function freePort(): Promise<number> {
  const free = await tryPort(0, "127.0.0.1");
  if ("refused" in free) throw new Error(free.refused);
  return free.port;
}

function lineAfter(label: string, text: string): string {
  const line = text.split("\n").find((candidate) => candidate.startsWith(label));
  return line?.slice(label.length).trim() ?? "";
}

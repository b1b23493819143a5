/** A local gateway whose workerd is killed while it serves: it serves again by itself, with the runs and the files that it has stored. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { startLocalGateway, type LocalGateway } from "../../scripts/local/gateway.ts";
import { openRun, send } from "../support/gateway.ts";

const ADMIN_KEY = "operator-key-of-these-tests-0123";

let folder = "";
let gateway: LocalGateway;
const printed: string[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "fanout-restart-"));
  const log = (line: string): void => void printed.push(line);
  const options = { host: "127.0.0.1", port: 0, dataDir: join(folder, "data"), log };
  gateway = await startLocalGateway({ vars: { ADMIN_KEY } }, options);
});
afterAll(async () => {
  await gateway.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Kills the workerd of this process. */
function killWorkerd(): void {
  const { stdout } = spawnSync("ps", ["-o", "pid=,args=", "--ppid", String(process.pid)], { encoding: "utf8" });
  const pid = /^\s*(\d+) \S*workerd serve /m.exec(stdout)?.[1];
  expect(pid).toBeDefined();
  process.kill(Number(pid), "SIGKILL");
}

it(
  "serves again after its workerd is killed, twice, with the runs and files that it has stored",
  { tags: ["slow"] },
  async () => {
    const { token } = await openRun(gateway.url, ADMIN_KEY, { budget: { usd: 1 } });
    const form = new FormData();
    form.set("purpose", "user_data");
    form.set("file", new Blob(["kept through a crash"]), "a.txt");
    const stored = await send(`${gateway.url}/v1/files`, { token, method: "POST", body: form });
    const { id } = z.object({ id: z.string() }).parse(await stored.json());
    for (const restarts of [1, 2]) {
      killWorkerd();
      await expect.poll(() => printed.filter((line) => line.includes("was started again")).length).toBe(restarts);
      const content = await send(`${gateway.url}/v1/files/${id}/content`, { token });
      expect([content.status, await content.text()]).toEqual([200, "kept through a crash"]);
      expect((await send(`${gateway.url}/query`, { token, json: { prompt: "x", model: "sim/echo" } })).status).toBe(
        200,
      );
    }
  },
);

it("refuses variables that it cannot keep, and leaves their folder free", { tags: ["slow"] }, async () => {
  const options = { host: "127.0.0.1", port: 0, dataDir: join(folder, "other"), log: (): void => undefined };
  const vars = { ADMIN_KEY, JURISDICTION: "eu" };
  await expect(startLocalGateway({ vars }, options)).rejects.toThrow("JURISDICTION holds on Cloudflare only");
  expect(readdirSync(options.dataDir)).toEqual([]);
});

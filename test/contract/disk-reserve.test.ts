/** A local gateway whose disk runs short: nothing opens below the reserve, what is open ends, and all goes on once there is room. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { startLocalGateway, type LocalGateway } from "../../scripts/local/gateway.ts";
import { DISK_FULL_RETRY_MS, DISK_RESERVE_BYTES } from "../../src/limits.ts";
import { openRun, send, type GatewayRequest } from "../support/gateway.ts";
import { answerOf, errorOf, type Answer } from "./world.ts";

const ADMIN_KEY = "operator-key-of-these-tests-0123";
const PLENTY = 2 * DISK_RESERVE_BYTES;

let folder = "";
let gateway: LocalGateway;
let freeBytes = PLENTY;
const printed: string[] = [];
/** Each lets one call be answered. */
const releases: (() => void)[] = [];
const provider = createServer((request, response) => {
  request.resume();
  releases.push(() => response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "late" } }] })));
});

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "fanout-reserve-"));
  await once(provider.listen(0, "127.0.0.1"), "listening");
  const address = provider.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const up = { kind: "openai", base_url: `http://127.0.0.1:${port}/v1`, models: ["up-1"], prices: PRICES };
  const UPSTREAMS = JSON.stringify({ sim: { kind: "simulated" }, up });
  const options = {
    host: "127.0.0.1",
    port: 0,
    dataDir: join(folder, "data"),
    log: (line: string) => printed.push(line),
  };
  const vars = { ADMIN_KEY, UPSTREAMS, DEFAULT_MODEL: "sim/echo" };
  gateway = await startLocalGateway({ vars }, { ...options, freeBytes: async () => freeBytes });
});

afterAll(async () => {
  await gateway.stop();
  provider.close();
  rmSync(folder, { recursive: true, force: true });
});

const PRICES = { "*": { input: 1, output: 2 } };

const ask = async (path: string, request: GatewayRequest): Promise<Answer> =>
  answerOf(await send(gateway.url + path, request));
const run = (): Promise<{ id: string; token: string }> => openRun(gateway.url, ADMIN_KEY, { budget: { usd: 1 } });

/** The disk has so much from now on, and the gateway knows. */
async function disk(bytes: number): Promise<void> {
  freeBytes = bytes;
  const isShort = bytes < DISK_RESERVE_BYTES;
  const open = (): Promise<number> => ask("/runs", { token: ADMIN_KEY, json: {} }).then(({ status }) => status);
  await expect.poll(open).toBe(isShort ? 507 : 201);
}

beforeEach(() => disk(PLENTY));

it(
  "opens nothing below the reserve, says so with 507 and a wait, and goes on once there is room",
  { tags: ["slow"] },
  async () => {
    const { token } = await run();
    await disk(DISK_RESERVE_BYTES - 1);
    const form = new FormData();
    form.set("purpose", "user_data");
    form.set("file", new Blob(["a"]), "a.txt");
    const ways: [string, GatewayRequest][] = [
      ["/runs", { token, json: {} }],
      ["/query", { token, json: { prompt: "a" } }],
      ["/batch", { token, json: { prompts: ["a"] } }],
      ["/dag", { token, json: { tasks: [{ id: "a", prompt: "a" }] } }],
      ["/log", { token, json: { event_type: "note" } }],
      ["/v1/chat/completions", { token, json: { model: "sim/echo", messages: [{ role: "user", content: "a" }] } }],
      ["/v1/files", { token, method: "POST", body: form }],
      ["/contexts", { token, method: "POST", body: "a", headers: { "content-type": "text/plain" } }],
      ["/v1/uploads", { token, json: { filename: "a", purpose: "batch", bytes: 1, mime_type: "text/plain" } }],
      ["/v1/batches", { token, json: { input_file_id: "file-1", endpoint: "/v1/chat/completions" } }],
    ];
    for (const [path, request] of ways) {
      const answer = await ask(path, request);
      expect([path, errorOf(answer)]).toEqual([
        path,
        expect.objectContaining({ code: "storage_full", type: "server_error", retryable: true }),
      ]);
      expect(answer.status).toBe(507);
      expect(Number(answer.headers.get("retry-after-ms"))).toBeGreaterThanOrEqual(DISK_FULL_RETRY_MS);
    }
    expect(printed.some((line) => line.includes("nothing opens until some is freed"))).toBe(true);
    await disk(PLENTY);
    expect((await ask("/batch", { token, json: { prompts: ["a"] } })).status).toBe(200);
  },
);

it("lets what is open end, be read and be deleted below the reserve", { tags: ["slow"] }, async () => {
  const { id, token } = await run();
  const answer = ask("/query", { token, json: { prompt: "a", model: "up/up-1" } });
  await expect.poll(() => releases.length).toBe(1);
  await disk(DISK_RESERVE_BYTES - 1);
  for (const release of releases) release();
  expect(await answer).toMatchObject({ status: 200, json: { text: "late" } });
  const read = z.object({ stats: z.object({ total_queries: z.literal(1) }) });
  expect(read.safeParse((await ask("/run", { token })).json).success).toBe(true);
  expect((await ask(`/runs/${id}`, { token: ADMIN_KEY, method: "DELETE" })).status).toBe(200);
});

it(
  "refuses a body that is announced to be larger than what is left above the reserve",
  { tags: ["slow"] },
  async () => {
    const { token } = await run();
    await disk(DISK_RESERVE_BYTES + 100_000);
    const large = { prompts: ["x".repeat(200_000)] };
    await expect.poll(async () => (await ask("/batch", { token, json: large })).status).toBe(507);
    expect((await ask("/batch", { token, json: { prompts: ["a"] } })).status).toBe(200);
  },
);

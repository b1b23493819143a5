/** `curl`, as a sandbox without any library uses it. */
import { execFile, spawn } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { RAW_JSON, RAW_TEXT } from "../support/provider-raw.ts";
import { startClients, type ClientRun, type Clients } from "./world.ts";

let clients: Clients;
let run: ClientRun;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async () => {
  clients.provider.forget();
  run = await clients.openRun({ budget: { usd: 1 } });
});
afterAll(() => clients.stop());

const argumentsFor = (body: object, more: string[] = []) => [
  ...["-sS", "-N", ...more, `${clients.baseUrl}/chat/completions`],
  ...["-H", `Authorization: Bearer ${run.token}`, "-H", "Content-Type: application/json", "-d", JSON.stringify(body)],
];
const curl = async (body: object, more?: string[]) =>
  (await promisify(execFile)("curl", argumentsFor(body, more), { maxBuffer: 16_000_000 })).stdout;
const request = (model: string, more: object = {}) => ({
  ...{ model, max_tokens: 50 },
  messages: [{ role: "user", content: "x" }],
  ...more,
});

it.each(["up/raw-fixed", "up/raw-chunked"])(
  "gets the provider's bytes with the cost in them, and no other change (%s)",
  async (model) => {
    const cost = clients.provider.billedNanoUsd();
    expect(cost).toBe(0);
    const answer = await curl(request(model));
    const filled = `"completion_tokens":3,"cost":${clients.provider.billedNanoUsd() / 1e9}}`;
    expect(answer).toBe(RAW_JSON.replace('"completion_tokens":3}', filled));
  },
);

it("gets an answer of megabytes whole", async () => {
  const answer = await curl(request("up/raw-huge"));
  expect(answer.length).toBeGreaterThan(3_000_000);
  expect(answer).toContain('"x_seed": 12345678901234567890123');
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("keeps a gap where the provider names no usage, and is charged the reservation", async () => {
  expect(await curl(request("up/raw-no-usage"))).not.toContain('"usage"');
  expect(await run.attempts(1)).toMatchObject([{ outcome: "success", estimated: true }]);
  expect(await run.spentNanoUsd()).toBeGreaterThan(0);
});

it("sees each piece of a stream before the next is made", async () => {
  const body = request("up/slow", { stream: true, messages: [{ role: "user", content: "one two three four five" }] });
  const child = spawn("curl", argumentsFor(body));
  const arrivals: number[] = [];
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    arrivals.push(performance.now());
  });
  await new Promise((resolve) => child.once("close", resolve));
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
  expect(text).not.toContain('"choices":[]');
  // Six pieces of content, 50 ms apart.
  expect(arrivals.length).toBeGreaterThan(4);
  expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThan(150);
});

it("gets a stream's bytes as they were sent, but for the usage that it did not ask for", async () => {
  const answer = await curl(request("up/raw-split", { stream: true }));
  expect(answer).toContain(RAW_TEXT);
  expect(answer).toContain(": working\r\n\r\n");
  expect(answer).not.toContain('"usage"');
  const asked = await curl(request("up/raw-split", { stream: true, stream_options: { include_usage: true } }));
  expect(asked).toContain(`"total_tokens":7,"cost":${clients.provider.billedNanoUsd() / 2 / 1e9}}`);
});

it("exits with an error where an answer breaks off", async () => {
  await expect(curl(request("once/raw-half"), ["--fail"])).rejects.toMatchObject({ code: 22 });
});

it("reads of a stream that broke that it did", async () => {
  const answer = await curl(request("up/raw-reset", { stream: true }));
  expect(answer).toMatch(
    /data: \{"error":\{"message":"up broke off its answer","type":"upstream_error",.*"code":"upstream_truncated"\}\}\n\n$/,
  );
  expect(answer).not.toContain("[DONE]");
});

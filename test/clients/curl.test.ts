/** `curl`, as a sandbox without any library uses it. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { reportLeftOut } from "../support/left-out.ts";
import { RAW_JSON, RAW_TEXT } from "../support/provider-raw.ts";
import { startClients, type ClientRun, type Clients } from "./world.ts";

const hasCurl = spawnSync("curl", ["--version"]).status === 0;
reportLeftOut("curl as a client", hasCurl ? null : "curl");

let clients: Clients;
let run: ClientRun;
beforeAll(async () => void (clients = await startClients()));
beforeEach(async (context) => {
  if (!hasCurl) context.skip("this machine has no curl");
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
  "curl gets the provider's bytes with the cost added, and no other change (%s)",
  async (model) => {
    const cost = clients.provider.billedNanoUsd();
    expect(cost).toBe(0);
    const answer = await curl(request(model));
    const filled = `"completion_tokens":3,"cost":${clients.provider.billedNanoUsd() / 1e9}}`;
    expect(answer).toBe(RAW_JSON.replace('"completion_tokens":3}', filled));
  },
);

it("curl gets an answer of megabytes whole", async () => {
  const answer = await curl(request("up/raw-huge"));
  expect(answer.length).toBeGreaterThan(3_000_000);
  expect(answer).toContain('"x_seed": 12345678901234567890123');
  expect(await run.spentNanoUsd()).toBe(clients.provider.billedNanoUsd());
});

it("curl gets no cost if the provider reports no usage, and is charged the reservation", async () => {
  expect(await curl(request("up/raw-no-usage"))).not.toContain('"usage"');
  expect(await run.attempts(1)).toMatchObject([{ outcome: "success", estimated: true }]);
  expect(await run.spentNanoUsd()).toBeGreaterThan(0);
});

it("curl gets the first part of a stream while most of it is still unsent", async () => {
  const content = "word ".repeat(60);
  const child = spawn(
    "curl",
    argumentsFor(request("up/slow", { stream: true, messages: [{ role: "user", content }] })),
  );
  let text = "";
  let madeAtFirst: number | null = null;
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    madeAtFirst ??= clients.provider.exchanges[0]?.answer.length ?? 0;
  });
  await new Promise((resolve) => child.once("close", resolve));
  expect(text).toMatch(/data: \[DONE\]\n\n$/);
  expect(text).not.toContain('"choices":[]');
  // The pieces are made 50 ms apart, and most of them after curl had the first.
  expect(madeAtFirst).toBeLessThan((clients.provider.exchanges[0]?.answer.length ?? 0) / 2);
});

it("curl gets a stream's bytes unchanged, without the usage that it did not request", async () => {
  const answer = await curl(request("up/raw-split", { stream: true }));
  expect(answer).toContain(RAW_TEXT);
  expect(answer).toContain(": working\r\n\r\n");
  expect(answer).not.toContain('"usage"');
  const asked = await curl(request("up/raw-split", { stream: true, stream_options: { include_usage: true } }));
  expect(asked).toContain('"total_tokens":7}');
  expect(asked.endsWith(`data: [DONE]\r\n\r\n: fanout cost=${clients.provider.billedNanoUsd() / 2 / 1e9}\n\n`)).toBe(
    true,
  );
});

it("curl exits with an error if an answer breaks off", async () => {
  await expect(curl(request("once/raw-half"), ["--fail"])).rejects.toMatchObject({ code: 22 });
});

it("curl gets an error event in a stream that breaks off", async () => {
  const answer = await curl(request("up/raw-reset", { stream: true }));
  expect(answer).toMatch(
    /data: \{"error":\{"message":"up broke off its answer","type":"upstream_error",.*"code":"upstream_truncated"\}\}\n\n$/,
  );
  expect(answer).not.toContain("[DONE]");
});

/** `fanout batch` at the gateway itself. What it does where a server fails: `test/unit/bin`. */
import type { ChildProcess } from "node:child_process";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { GatewayOptions } from "../support/gateway.ts";
import { type Ended, Folder } from "../unit/cli/command.ts";
import { type BatchPlace, type BatchRun, startBatchPlace } from "./batch-place.ts";

const ONE_ENDED = { request_counts: { completed: 1 } };
const WAIT = { timeout: 20_000, interval: 100 };

/** So that a gateway that is started again is found where it was. */
const options: GatewayOptions = {};

let place: BatchPlace;
beforeAll(async () => {
  place = await startBatchPlace(undefined, options);
  options.port = Number(new URL(place.gateway().url).port);
});
afterAll(() => place.stop());

let folder: Folder;
let run: BatchRun;
beforeEach(async () => {
  [folder, run] = await Promise.all([Folder.create(), place.openRun({ budget: { usd: 1 }, max_parallel: 32 })]);
});
afterEach(() => folder.remove());

function fanout(args: readonly string[], onSaid?: Parameters<Folder["fanout"]>[1]): Promise<Ended> {
  const env = { FANOUT_URL: place.gateway().url, FANOUT_TOKEN: run.token };
  return folder.fanout(["batch", ...args], { env, ...onSaid });
}

const textOf = (custom_id: string, text: string) => ({ custom_id, text, finish_reason: "stop" });

async function batchIds(): Promise<string[]> {
  const { data } = await run.openai.batches.list();
  return data.map(({ id }) => id);
}

const budget = z.object({ usd: z.object({ spent: z.number().positive(), reserved: z.literal(0) }) });

async function spentUsd(): Promise<number> {
  return budget.parse((await run.send("/budget")).json).usd.spent;
}

describe("fanout batch", () => {
  it(
    "writes the answers of three models in order, each failure at its index, and pays once when started twice",
    { tags: ["slow"] },
    async () => {
      const rows = ["a", "b", "c", "d"].map((id, place) => ({
        ...{ id, prompt: `prompt ${id}` },
        ...(place === 1 ? { model: "sim/fail?status=400" } : place === 2 ? { model: "sim/slow?ms=300" } : {}),
      }));
      await folder.write("in.jsonl", rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
      const args = ["in.jsonl", "-o", "out.jsonl", "--model", "sim/echo", "--max-tokens", "50"];
      const first = await fanout(args);
      expect(first).toMatchObject({ status: 2, stdout: "" });
      expect(first.stderr).toContain("\n3 lines completed, 1 failed: out.jsonl\n");
      expect(first.stderr).toMatch(/\n3 calls completed, 1 failed · <?\$0\.0\d{3} · \d+s · \S+\n$/);
      expect(first.stderr).toContain(` · ${place.gateway().url}/ui/runs/${run.id}\n`);
      const answers = await folder.lines("out.jsonl");
      expect(answers).toEqual([
        textOf("a", "prompt a"),
        { custom_id: "b", error: { code: expect.any(String), message: expect.any(String), status: 400 } },
        { custom_id: "c", text: expect.any(String), finish_reason: "stop" },
        textOf("d", "prompt d"),
      ]);
      const spent = await spentUsd();
      const second = await fanout([...args, "--json"]);
      expect([second.status, JSON.parse(second.stdout)]).toEqual([
        2,
        expect.objectContaining({ completed: 3, failed: 1, run: run.id, cost_usd: expect.closeTo(spent, 9) }),
      ]);
      expect(await folder.lines("out.jsonl")).toEqual(answers);
      expect(await spentUsd()).toBe(spent);
      expect(await batchIds()).toHaveLength(1);
    },
  );

  it("creates embeddings too", { tags: ["slow"] }, async () => {
    await folder.write("in.txt", "one\ntwo\n");
    const args = ["in.txt", "-o", "out.jsonl", "--endpoint", "/v1/embeddings", "--model", "sim/echo"];
    expect((await fanout(args)).status).toBe(0);
    expect(await folder.lines("out.jsonl")).toEqual(
      ["row-1", "row-2"].map((custom_id) => ({ custom_id, embedding: expect.any(Array) })),
    );
  });

  it("reports lines that the gateway refuses by the line numbers of the input", async () => {
    const rows = [
      "",
      '{"prompt":"a"}',
      "",
      '{"prompt":"b","model":"none/such"}',
      '{"prompt":"c","params":{"stream":true}}',
    ];
    await folder.write("in.jsonl", rows.join("\n"));
    const { status, stderr } = await fanout(["in.jsonl", "-o", "out.jsonl", "--model", "sim/echo", "-q"]);
    expect(status).toBe(3);
    expect(stderr.split("\n").slice(0, 2)).toEqual([
      "Line 4: The provided model 'none/such' is not supported by the Batch API.",
      "Line 5: Chat Completions: Streaming is not supported in the Batch API.",
    ]);
  });

  it("continues to poll while the gateway is killed and restarted", { tags: ["slow"] }, async () => {
    const prompts = Array.from({ length: 40 }, (_, place) => `prompt ${place}`);
    await folder.write("in.txt", prompts.join("\n"));
    let restarted: Promise<void> | null = null;
    const onSaid = (said: string) => {
      if (said.includes(": 40 lines.\n")) restarted ??= place.restart();
    };
    const { status, stderr } = await fanout(["in.txt", "-o", "out.jsonl", "--model", "sim/slow?ms=1500"], { onSaid });
    await restarted;
    expect(restarted).not.toBe(null);
    expect(stderr).toMatch(/! (Nothing listens at|Cannot reach) /);
    expect(status).toBe(0);
    const answers = await folder.lines("out.jsonl");
    expect(answers).toMatchObject(prompts.map((_, place) => ({ custom_id: `row-${place + 1}` })));
    expect(await batchIds()).toHaveLength(1);
  });

  it(
    "leaves the batch running on Ctrl-C, cancels it on --cancel, and writes the finished answers",
    { tags: ["slow"] },
    async () => {
      await folder.write("in.jsonl", '{"prompt":"a","model":"sim/echo"}\n{"prompt":"b","model":"sim/slow?ms=30000"}\n');
      const args = ["in.jsonl", "-o", "out.jsonl"];
      let waited: Promise<void> | null = null;
      const interruptOnceOneHasEnded = async (child: ChildProcess) => {
        await vi.waitFor(async () => expect((await run.openai.batches.list()).data).toMatchObject([ONE_ENDED]), WAIT);
        child.kill("SIGINT");
      };
      const onSaid = (said: string, child: ChildProcess) => {
        if (said.includes(": 2 lines.\n")) waited ??= interruptOnceOneHasEnded(child);
      };
      const stopped = await fanout(args, { onSaid });
      await waited;
      expect(stopped.status).toBe(130);
      expect((await fanout(["--cancel", "-o", "out.jsonl"])).status).toBe(0);
      expect((await fanout(args)).status).toBe(4);
      expect(await folder.lines("out.jsonl")).toEqual([
        textOf("row-1", "a"),
        { custom_id: "row-2", error: { code: "batch_cancelled", message: expect.any(String) } },
      ]);
    },
  );

  it("names the file of a token that the gateway refuses", async () => {
    await folder.write("in.txt", "one\n");
    await folder.write("token", "not-a-token\n");
    const { status, stderr } = await fanout(["in.txt", "-o", "out.jsonl", "--token-file", "token", "-q"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/ does not accept the token from token \(.+\)\.\n$/);
  });
});

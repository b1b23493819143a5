/** Contexts that are too large for a row: in R2, read once by whoever sends their calls, and deleted with their run. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { heldTexts } from "../../src/executors/contexts/send.ts";
import { ShelfObject } from "../../src/index.ts";
import { CONTEXT_ROW_BYTES_MAX, CONTEXTS_HELD_BYTES_MAX } from "../../src/limits.ts";
import { skipTime } from "../support/objects-clock.ts";
import { openRun, upstreamStats, type TestRun } from "../support/objects-run.ts";

/** More than a row may have, in characters of two bytes. */
const LARGE = "Zeile für Zeile ein langer Text, öfter als nötig.\n".repeat(Math.ceil((7 * CONTEXT_ROW_BYTES_MAX) / 54));
const POINTS = [...LARGE];

const stored = z.looseObject({ id: z.string(), chars: z.int(), bytes: z.int() });

const store = (run: TestRun, text: string): Promise<Response> =>
  run.postStream("/contexts", new Blob([text]).stream(), "text/plain");

const keysOf = async (run: TestRun): Promise<string[]> =>
  (await env.FILES.list({ prefix: `${run.id}/` })).objects.map(({ key }) => key);

describe("a context of more than a megabyte", () => {
  it("is one object of R2, however often it is stored, until it is deleted", { tags: ["slow"] }, async () => {
    const run = await openRun();
    const first = await store(run, LARGE);
    expect(first.status).toBe(201);
    const { id, chars, bytes } = stored.parse(await first.json());
    expect([chars, bytes]).toEqual([POINTS.length, new TextEncoder().encode(LARGE).length]);
    const keys = await keysOf(run);
    expect(keys.map((key) => key.slice(0, key.lastIndexOf("/")))).toEqual([`${run.id}/contexts`]);
    const again = await store(run, LARGE);
    expect([again.status, stored.parse(await again.json()).id]).toEqual([200, id]);
    expect(await keysOf(run)).toEqual(keys);
    expect((await run.send("DELETE", `/contexts/${id}`)).status).toBe(200);
    expect(await keysOf(run)).toEqual([]);
  });

  it("is cut into calls that hold little of it, and lose none of it", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 16 });
    const { id } = stored.parse(await (await store(run, LARGE)).json());
    const over = { context: id, split: { size: 20_000 } };
    const answer = await run.batch({ over, prompt: "{{chunk}}", model: "up/key/chunks" });
    expect(answer.results.join("")).toBe(LARGE);
    expect((await upstreamStats("chunks")).requests).toBe(Math.ceil(POINTS.length / 20_000));
    // JSON escapes a few characters, which is known only once a text is read.
    expect(heldTexts.held.bytesPeak).toBeLessThan(CONTEXTS_HELD_BYTES_MAX * 1.1);
    const lines = await run.batch({
      over: { ...over, split: { by: "lines", size: 400_000 } },
      prompt: "{{chunk}}",
      model: "up/echo",
    });
    expect(lines.results.join("")).toBe(LARGE);
    for (const chunk of lines.results.slice(0, -1)) expect(String(chunk).endsWith("\n")).toBe(true);
  });

  it(
    "can be stored once more after a crash between its upload and its row, and leaves nothing with its run",
    { tags: ["slow"] },
    async () => {
      const run = await openRun({ retention_s: 60 });
      const plain = ShelfObject.prototype.addContext;
      onTestFinished(() => void (ShelfObject.prototype.addContext = plain));
      ShelfObject.prototype.addContext = () => {
        throw new Error("crashed");
      };
      expect((await store(run, LARGE)).status).toBe(500);
      ShelfObject.prototype.addContext = plain;
      expect(
        z.looseObject({ data: z.array(z.unknown()) }).parse(await (await run.send("GET", "/contexts")).json()).data,
      ).toEqual([]);
      expect((await keysOf(run)).length).toBe(1);
      await run.object.endAndWait("closed", null);
      skipTime(61_000);
      await runDurableObjectAlarm(run.object);
      expect(await keysOf(run)).toEqual([]);
    },
  );
});

describe("a context of 500 KB in many calls at once", () => {
  it("is read and held once", { tags: ["slow"] }, async () => {
    const run = await openRun({ max_parallel: 64 });
    const text = LARGE.slice(0, 450_000);
    const { id, bytes } = stored.parse(await (await store(run, text)).json());
    const reads: number[] = [];
    const plain = ShelfObject.prototype.contextText;
    onTestFinished(() => void (ShelfObject.prototype.contextText = plain));
    ShelfObject.prototype.contextText = function (this: ShelfObject, ...args) {
      reads.push(args[2] - args[1]);
      return plain.apply(this, args);
    };
    const questions = Array.from({ length: 100 }, (_, index) => `Question ${index}?`);
    const answer = await run.batch({ context: id, prompts: questions, model: "up/key/shared", max_tokens: 16 });
    expect(answer.status).toBe("completed");
    expect((await upstreamStats("shared")).requests).toBe(100);
    // Once by the Worker of the client, and once by each lane that joins it in another isolate; here they share one.
    expect(reads).toEqual([bytes]);
  });
});

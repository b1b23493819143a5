/** Quotes over the chunks of a context: what is found out about its text, and what the run is asked. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { ContextRecord } from "../../../../src/contexts/types.ts";
import { TextIndexer } from "../../../../src/contexts/text-index.ts";
import { createApp } from "../../../../src/http/app.ts";
import { ITEMS_PER_BATCH_MAX } from "../../../../src/limits.ts";
import { readFacts } from "../../../../src/run/queue/call-page.ts";
import type { CallPage } from "../../../../src/run/queue/call-page.ts";

const ADMIN_KEY = "operator-key-0123456789-0123456789";

beforeAll(() => void vi.stubGlobal("scheduler", { wait: () => Promise.resolve() }));
afterAll(() => void vi.unstubAllGlobals());

const reply = z.object({
  items: z.array(z.looseObject({ index: z.int(), prompt_tokens_max: z.int() })),
});

/** The gateway with a run that has one text, and notes what it is asked. */
function world(id: string, text: string) {
  const bytes = new TextEncoder().encode(text);
  const indexer = new TextIndexer();
  indexer.push(bytes);
  const indexed = indexer.end();
  if ("message" in indexed) throw new Error(indexed.message);
  const { index, ...sizes } = indexed;
  const record: ContextRecord = { id, name: null, ...sizes, createdAtMs: 0, object: null };
  const asked = { texts: 0, quoted: 0, hasContext: true };
  const files = {
    context: () => Promise.resolve(asked.hasContext ? { record, index } : null),
    contextText: (_: string, from: number, to: number) => {
      asked.texts += 1;
      return Promise.resolve(bytes.slice(from, to));
    },
  };
  const run = {
    budget: () => Promise.resolve(null),
    // What it quotes tells which call it was asked about.
    quote: (models: (string | null)[], pages: CallPage[]) => {
      const facts = pages.flatMap((page) => readFacts(page.facts, models));
      asked.quoted += facts.length;
      return Promise.resolve(
        facts.map(({ promptBytes }) => ({
          worstNanoUsd: 1,
          likelyNanoUsd: 1,
          promptTokensMax: promptBytes,
          completionTokensMax: 1,
        })),
      );
    },
  };
  const RUN = { idFromString: (name: string) => name, idFromName: (name: string) => name, get: () => run };
  const env = { ADMIN_KEY, UPSTREAMS: { sim: { kind: "simulated" } }, RUN, SHELF: { getByName: () => files } };
  const headers = {
    authorization: `Bearer ${ADMIN_KEY}`,
    "content-type": "application/json",
    "x-fanout-run": "run_1",
  };
  const app = createApp();
  const quote = async (split: object) => {
    const body = JSON.stringify({ over: { context: id, split }, prompt: "Summarise: {{chunk}}" });
    return await app.request("/batch?quote=1", { method: "POST", headers, body }, env);
  };
  return { asked, quote, items: async (split: object) => reply.parse(await (await quote(split)).json()).items };
}

describe("a quote over the chunks of a context", () => {
  it("reads the text once for all ways to cut it at lines, and not at all for a run that has lost it", async () => {
    const { asked, quote, items } = world(`ctx_${"a".repeat(32)}`, "ab\n".repeat(1_000));
    const split = { by: "lines", size: 300, overlap: 0 };
    const first = await items(split);
    expect([first.length, asked.texts]).toEqual([10, 1]);
    expect(await items(split)).toEqual(first);
    expect(asked.texts).toBe(1);
    expect((await items({ ...split, size: 600 })).length).toBe(5);
    expect(asked.texts).toBe(1);
    // What a line is matters to others: they read it once more.
    for (const by of ["paragraphs", "markdown"]) expect((await items({ ...split, by })).length).toBe(10);
    expect(asked.texts).toBe(2);
    asked.hasContext = false;
    expect((await quote(split)).status).toBe(404);
  });

  it("reads a text once for requests that arrive together", async () => {
    const { asked, items } = world(`ctx_${"c".repeat(32)}`, "ab\n".repeat(1_000));
    // However slow the machine is, the one that reads gives a sign of life in time.
    vi.useFakeTimers({ toFake: ["Date"] });
    const found = await Promise.all([300, 600, 900].map((size) => items({ by: "lines", size, overlap: 0 })));
    vi.useRealTimers();
    expect(found.map(({ length }) => length)).toEqual([10, 5, 4]);
    expect(asked.texts).toBe(1);
  });

  it("refuses a size that cuts a text too small, and reads no text for the next one", async () => {
    const { asked, quote, items } = world(`ctx_${"d".repeat(32)}`, "x\n".repeat(ITEMS_PER_BATCH_MAX + 1));
    expect((await quote({ by: "lines", size: 2 })).status).toBe(400);
    expect((await items({ by: "lines", size: 1_000_000 })).length).toBe(1);
    expect(asked.texts).toBe(1);
  });

  it("asks the run about each kind of chunk once, and shows each chunk its own quote", async () => {
    // Lines of 10 and of 20 characters take turns: the last chunk of 25 characters at most is one line as well.
    const text = Array.from({ length: 400 }, (_, line) => `${"x".repeat(line % 2 === 0 ? 9 : 19)}\n`).join("");
    const { asked, items } = world(`ctx_${"b".repeat(32)}`, text);
    const found = await items({ by: "lines", size: 25, overlap: 0 });
    expect(asked.quoted).toBe(2);
    const [short = 0, long = 0] = found.map(({ prompt_tokens_max: bytes }) => bytes);
    expect(long - short).toBe(10);
    expect(found.map(({ index, prompt_tokens_max }) => [index, prompt_tokens_max])).toEqual(
      Array.from({ length: 400 }, (_, at) => [at, at % 2 === 0 ? short : long]),
    );
  });
});

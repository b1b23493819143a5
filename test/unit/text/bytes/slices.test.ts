import { describe, expect, it, vi } from "vitest";
import { inSlices, pause } from "../../../../src/text/bytes/slices.ts";
import { batchReading, readBatch, readPieces } from "../../../../src/contract/large-batch.ts";
import { dagParsing, parseDag } from "../../../../src/contract/graph/dag.ts";
import {
  LARGE_BODY_BYTES_MIN,
  SCAN_SLICE_BYTES,
  SLICE_CHARS_MAX,
  SLICE_PIECE_CHARS,
  TEXT_SLICE_CHARS,
} from "../../../../src/limits.ts";
import { readRequest, requestReading } from "../../../../src/providers/formats/request/read.ts";

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** The result of sliced work, and how often it lets others go on. */
async function sliced<T>(work: Generator<void, T, void>): Promise<{ value: T; pauses: number }> {
  let pauses = 0;
  const value = await inSlices(work, () => {
    pauses += 1;
    return Promise.resolve();
  });
  return { value, pauses };
}

const chat = (bytes: number) => encode({ model: "m", messages: [{ role: "user", content: "é ".repeat(bytes / 3) }] });
const prompts = (bytes: number) => encode({ prompts: Array.from({ length: bytes / 1_000 }, () => "a".repeat(997)) });

describe("a large body is read in slices", () => {
  it("of /v1, with the same facts", async () => {
    const bytes = chat(8 * SCAN_SLICE_BYTES);
    const { value, pauses } = await sliced(requestReading("chat", bytes));
    expect(value).toEqual(readRequest("chat", bytes));
    // Its one text is validated, and what normalising adds to it is counted: both in slices.
    expect(pauses).toBeGreaterThanOrEqual(16);
  });

  it("of /v1 with many tools, one after another", async () => {
    const tool = { type: "function", function: { name: "f", description: "d".repeat(1_000), parameters: {} } };
    const tools = Array.from({ length: (5 * SLICE_CHARS_MAX) / 1_000 }, () => tool);
    const message = { role: "user", content: "a" };
    const bytes = encode({ model: "m", messages: [message], tools });
    const { value, pauses } = await sliced(requestReading("chat", bytes));
    expect(value).toEqual(readRequest("chat", bytes));
    // Where the same bytes are one text, there is nothing to pause between.
    const text = encode({ model: "m", messages: [{ ...message, content: JSON.stringify(tools) }] });
    expect(pauses - (await sliced(requestReading("chat", text))).pauses).toBeGreaterThanOrEqual(4);
  });

  it("of a batch, with the same calls", async () => {
    const bytes = prompts(8_000_000);
    const { value, pauses } = await sliced(batchReading(bytes));
    const whole = readBatch(bytes);
    expect(value.ok && whole.ok && [...value.value.calls]).toEqual(whole.ok && [...whole.value.calls]);
    expect(pauses).toBeGreaterThanOrEqual(8);
  });

  it("of a batch with long prompts, within each of them", async () => {
    const text = `the quick brown fox ${"x".repeat(50)} é `.repeat((2.5 * TEXT_SLICE_CHARS) / 73);
    const bytes = encode({ prompts: [text, text] });
    const { value, pauses } = await sliced(batchReading(bytes));
    const whole = readBatch(bytes);
    expect(value.ok && whole.ok && [...value.value.calls]).toEqual(whole.ok && [...whole.value.calls]);
    // Two in each prompt, and one behind each.
    expect(pauses).toBe(6);
  });

  it("of a batch of items with long prompts, with the same refusal of the one that is too long", async () => {
    const text = "the quick brown fox ".repeat((2.5 * TEXT_SLICE_CHARS) / 20);
    const item = { prompt: text, params: { seed: 1 }, id: "a" };
    const bytes = encode({ items: [item, { prompt: "short" }] });
    const { value, pauses } = await sliced(batchReading(bytes));
    const whole = readBatch(bytes);
    expect(value.ok && whole.ok && [...value.value.calls]).toEqual(whole.ok && [...whole.value.calls]);
    // Two in its prompt, and one behind it.
    expect(pauses).toBe(3);
    const refused = encode({ items: [{ prompt: "short" }, { prompt: text, schema: 5 }] });
    expect((await sliced(batchReading(refused))).value).toMatchObject({ reason: { param: "items[1].schema" } });
  });

  it.each(["prompts", "items"])("of a batch above a megabyte with long %s, which are measured once", async (field) => {
    const text = "the quick brown fox ".repeat((1.1 * LARGE_BODY_BYTES_MIN) / 20);
    const pausesOf = async (texts: string[]): Promise<number> => {
      const bytes = encode({ [field]: field === "items" ? texts.map((prompt) => ({ prompt })) : texts });
      const { value, pauses } = await sliced(batchReading(bytes));
      if (!value.ok) throw new Error("refused");
      const encodings = vi.spyOn(TextEncoder.prototype, "encodeInto");
      const [call] = [...value.value.calls];
      expect(encodings).not.toHaveBeenCalled();
      encodings.mockRestore();
      const alone = readPieces(bytes, 1);
      expect(alone?.ok === true && [...alone.value.calls][0]).toEqual(call);
      return pauses;
    };
    const slicesOfOne = Math.ceil(text.length / TEXT_SLICE_CHARS);
    const one = await pausesOf([text]);
    expect(one).toBeGreaterThanOrEqual(slicesOfOne);
    expect((await pausesOf([text, text])) - one).toBeGreaterThanOrEqual(slicesOfOne);
  });

  it("of a batch full of names that it does not know, with the same refusal", { tags: ["slow"] }, async () => {
    const names = Array.from({ length: (4 * SCAN_SLICE_BYTES) / 16 }, (_, at) => [`u${at + 1e9}`, 1]);
    const bytes = encode({ prompts: ["a"], ...Object.fromEntries(names) });
    const { value, pauses } = await sliced(batchReading(bytes));
    expect(value).toEqual(readBatch(bytes));
    expect(value.ok).toBe(false);
    // Its depth is looked at, and then its list for, each in slices.
    expect(pauses).toBeGreaterThanOrEqual(8);
  });

  it("of a batch whose calls share megabytes of params, with the same settings", async () => {
    const stop = "the quick brown fox ".repeat((5 * SLICE_CHARS_MAX) / 20);
    const bytes = encode({ params: { stop }, items: [{ prompt: "a" }, { prompt: "b", params: { seed: 1 } }] });
    const { value, pauses } = await sliced(batchReading(bytes));
    const whole = readBatch(bytes);
    expect(value.ok && whole.ok && [...value.value.calls]).toEqual(whole.ok && [...whole.value.calls]);
    expect(value.ok && value.value.defaults).toEqual(whole.ok && whole.value.defaults);
    // The tokens of five slices are counted; a body of this size has three more pauses before.
    expect(pauses).toBeGreaterThanOrEqual(7);
  });

  it("of a graph, with the same tasks: by its tasks, and by what they share", async () => {
    const tasks = Array.from({ length: 9_000 }, (_, at) => ({ id: `t${at}`, prompt: "a" }));
    const many = await sliced(dagParsing({ tasks }));
    expect(many.value).toEqual(parseDag({ tasks }));
    // Each task counts for itself, however short it is.
    expect(many.pauses).toBe(Math.floor((9_000 * (SLICE_PIECE_CHARS + 1)) / SLICE_CHARS_MAX));
    const stop = "the quick brown fox ".repeat((5 * SLICE_CHARS_MAX) / 20);
    const large = { params: { stop }, tasks: [{ id: "a", prompt: "a" }] };
    const shared = await sliced(dagParsing(large));
    const whole = parseDag(large);
    expect(shared.value.ok && shared.value.value.tasks).toEqual(whole.ok && whole.value.tasks);
    expect(shared.pauses).toBeGreaterThanOrEqual(4);
  });

  it("and a small one at once: a pause costs more than it", async () => {
    expect((await sliced(requestReading("chat", chat(LARGE_BODY_BYTES_MIN / 2)))).pauses).toBe(0);
    expect((await sliced(batchReading(prompts(SLICE_CHARS_MAX / 2)))).pauses).toBe(0);
    expect((await sliced(dagParsing({ params: { seed: 1 }, tasks: [{ id: "a", prompt: "a" }] }))).pauses).toBe(0);
  });
});

it("lets others go on in a pause", async () => {
  const order: string[] = [];
  setTimeout(() => order.push("other"), 0);
  await pause();
  order.push("own");
  expect(order).toEqual(["other", "own"]);
});

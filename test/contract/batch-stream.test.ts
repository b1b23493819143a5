/** `POST /batch` as a stream: NDJSON, server-sent events, and the white space that keeps a slow reply alive. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { errorOf, startWorld, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 8 });
});
afterAll(() => world.stop());

const event = z.looseObject({ type: z.string(), index: z.int().optional() });
type Event = z.infer<typeof event>;

/** Calls that wait at latches of their own, and one that is refused at once. */
const promptsOf = (name: string) => [
  ...["slow", "fast", "middle"].map((word, at) => `{{latch/${name}-${at}}} ${word}`),
  "{{status/400}} refused",
];
/** The order in which they end. */
const ENDS = [3, 1, 2, 0];

const asking = (accept: string, body: unknown) => ({ json: body, headers: { accept } });

/** Posts such a batch. Each call is answered once the end of the one before it has arrived. */
async function inOrder(name: string, accept: string) {
  const prompts = promptsOf(name);
  const response = await world.gateway.fetch("/batch", { token: run.token, ...asking(accept, { prompts }) });
  const texts = await pieces(response, (_, text) => {
    const ended = text.split('"type":"slot"').length - 1;
    for (const at of ENDS.slice(1, ended + 1)) world.upstream.open(`${name}-${at}`);
  });
  return { prompts, status: response.status, headers: response.headers, text: texts.join("") };
}

function expectGroup(events: Event[], prompts: string[]): void {
  expect(events.map(({ type }) => type)).toEqual(["group_started", "slot", "slot", "slot", "slot", "group_completed"]);
  expect(events.slice(1, -1).map(({ index }) => index)).toEqual(ENDS);
  const [started, refused, fast] = events;
  expect(started).toMatchObject({ count: 4, effective_parallel: 8 });
  expect(started?.["id"]).toMatch(/^pg-\d{13}-[0-9a-z]{1,6}$/);
  expect(new Set(events.map((one) => one["parallel_group_id"]))).toEqual(new Set([started?.["id"]]));
  expect(refused).toMatchObject({ status: "failed", result: expect.stringMatching(/^\[error\] /), attempts: 1 });
  expect(refused?.["error"]).toMatchObject({ code: "upstream_error", status: 400, retryable: false });
  expect(fast).toMatchObject({ status: "completed", result: prompts[1], error: null, model: "up-1", attempts: 1 });
  expect(events.at(-1)).toMatchObject({
    status: "partial",
    count: 4,
    execution_ms: expect.any(Number),
    cost: expect.any(Number),
    metrics: { peak_parallel: 4, success_rate: 0.75 },
  });
}

describe("NDJSON", () => {
  it("has a JSON object per line: the group's start, each slot as it ends, the group's end", async () => {
    const answer = await inOrder("lines", "application/x-ndjson");
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson; charset=utf-8"]);
    expect(answer.text.endsWith("\n")).toBe(true);
    expectGroup(
      answer.text
        .trimEnd()
        .split("\n")
        .map((line) => event.parse(JSON.parse(line))),
      answer.prompts,
    );
  });

  it("arrives while the batch still runs", async () => {
    const body = { prompts: ["{{latch/slow}} slow", "b", "c"] };
    const response = await world.gateway.fetch("/batch", { token: run.token, ...asking("application/x-ndjson", body) });
    const arrived: string[] = [];
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) {
      for (const line of decoder.decode(piece, { stream: true }).split("\n").filter(Boolean)) {
        const { type, index } = event.parse(JSON.parse(line));
        arrived.push(`${type} ${index ?? ""}`.trim());
        // The slow one is answered once the others have arrived: if they were buffered, nothing would arrive.
        if (arrived.length === 3) world.upstream.open("slow");
      }
    }
    expect(arrived.slice(0, 3).toSorted()).toEqual(["group_started", "slot 1", "slot 2"]);
    expect(arrived.slice(3)).toEqual(["slot 0", "group_completed"]);
  });

  it("has the ids and the error style that the client requested", async () => {
    const items = [{ id: "x", prompt: "a" }, { prompt: "{{status/400}}" }];
    const body = { items, error_style: "settled", concurrency: 1 };
    const answer = await run.send("/batch", asking("application/x-ndjson", body));
    const slots = answer.text.trimEnd().split("\n").slice(1, -1);
    expect(slots.map((line) => event.parse(JSON.parse(line)))).toMatchObject([
      { index: 0, id: "x", result: { status: "fulfilled", value: "a", index: 0 } },
      { index: 1, id: null, result: { status: "rejected", index: 1 }, error: { code: "upstream_error" } },
    ]);
  });

  it("contains each of 1,000 slots once", { tags: ["slow"] }, async () => {
    const prompts = Array.from({ length: 1_000 }, (_, index) => `${index}`);
    const answer = await run.send("/batch", asking("application/x-ndjson", { prompts, model: "sim/random?max=20" }));
    const events = answer.text
      .split("\n")
      // A blank line keeps the connection alive while a busy machine ends no slot.
      .filter((line) => line.trim() !== "")
      .map((line) => event.parse(JSON.parse(line)));
    const told = events.filter(({ type }) => type === "slot");
    expect(told.map(({ index }) => index).toSorted((a, b) => Number(a) - Number(b))).toEqual(prompts.map(Number));
    expect(told.every((slot) => slot["result"] === String(slot.index))).toBe(true);
  });
});

describe("server-sent events", () => {
  it("are numbered from 1, named by their type, and contain the same data as NDJSON", async () => {
    const answer = await inOrder("events", "text/event-stream");
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.text.endsWith("\n\n")).toBe(true);
    const frames = answer.text
      .trimEnd()
      .split("\n\n")
      .map((frame) => frame.split("\n"));
    const events = frames.map((lines, at) => {
      const [id, name, data, ...rest] = lines;
      const parsed = event.parse(JSON.parse(data?.replace(/^data: /, "") ?? ""));
      expect([id, name, rest]).toEqual([`id: ${at + 1}`, `event: ${parsed.type}`, []]);
      return parsed;
    });
    expectGroup(events, answer.prompts);
  });

  it("escape the line breaks of a text, so that each event has one data line", async () => {
    const answer = await run.send("/batch", asking("text/event-stream", { prompts: ["a\n\nb\r\ndata: x\u2028"] }));
    expect(answer.text.trimEnd().split("\n\n")).toHaveLength(3);
    expect(answer.text).toContain(JSON.stringify("a\n\nb\r\ndata: x\u2028"));
  });
});

describe.each(["application/x-ndjson", "text/event-stream"])("a stream as %s", (accept) => {
  it("is refused with a JSON error before it begins", async () => {
    const answer = await run.send("/batch", asking(accept, { prompts: [1] }));
    expect([answer.status, errorOf(answer).param]).toEqual([400, "prompts[0]"]);
  });

  it("of an empty list contains only its end", async () => {
    const answer = await run.send("/batch", asking(accept, { prompts: [] }));
    expect(answer.headers.get("content-type")).toBe(`${accept}; charset=utf-8`);
    const json = answer.text.replace(/^id: 1\nevent: group_completed\ndata: /, "").trimEnd();
    expect(JSON.parse(json)).toMatchObject({
      type: "group_completed",
      id: null,
      count: 0,
      cost: 0,
      status: "completed",
    });
  });
});

/** What each format sends while nothing happens. */
const KEEP_ALIVES = [" ", "\n", ": keep-alive\n\n"];

describe("a slow JSON answer", () => {
  it(
    "sends its headers at once and white space every 10 s, and is still valid JSON; streams get keep-alives too",
    { tags: ["slow"] },
    async () => {
      const body = { prompts: ["{{latch/silent}} slow"] };
      const responses = await Promise.all(
        ["application/json", "application/x-ndjson", "text/event-stream"].map((accept) =>
          world.gateway.fetch("/batch", { token: run.token, ...asking(accept, body) }),
        ),
      );
      // The headers are here, and the upstream has not answered.
      const kept = new Set<Response>();
      const keep = (response: Response) => (piece: string) => {
        if (KEEP_ALIVES.includes(piece)) kept.add(response);
        if (kept.size === responses.length) world.upstream.open("silent");
      };
      const [json, lines, events] = await Promise.all(responses.map((response) => pieces(response, keep(response))));
      expect(json?.[0]).toBe(" ");
      expect(JSON.parse(json?.join("") ?? "")).toMatchObject({ status: "completed", results: body.prompts });
      expect(lines).toContain("\n");
      expect(events).toContain(": keep-alive\n\n");
    },
  );
});

/** Reads a stream to its end. `arrived` gets each piece, and all so far. */
async function pieces(response: Response, arrived: (piece: string, text: string) => void): Promise<string[]> {
  const decoder = new TextDecoder();
  const texts: string[] = [];
  for await (const bytes of response.body ?? []) {
    const piece = decoder.decode(bytes, { stream: true });
    texts.push(piece);
    arrived(piece, texts.join(""));
  }
  return texts;
}

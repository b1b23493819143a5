/** A group's results, by page or as its slots end, and its report. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { endOf, framesOf, openGroup } from "./following.ts";
import { errorOf, startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
let run: RunAccess;
beforeAll(async () => {
  world = await startWorld();
  run = await world.openRun({ default_model: "up-1", max_parallel: 8 });
});
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

const SLOW = "{{delay/3000}} slow";
const MIXED = ["a", "{{status/400}} refused", "{{delay/200}} c | d", "e"];

describe("GET /groups/:id/slots/:index", () => {
  const looked = z.looseObject({ prompt_head: z.string().nullable(), result_head: z.string().nullable() });

  it("shows one call with the beginnings of its prompt and its answer, cut at 600 characters", async () => {
    const long = "x".repeat(5_000);
    const items = [
      { id: "short", prompt: "short" },
      { prompt: long },
      {
        messages: [
          { role: "system", content: "be brief" },
          { role: "user", content: [{ type: "text", text: "hi" }] },
        ],
      },
      { prompt: "{{status/400}} refused" },
    ];
    const { at } = await openGroup(run, { items });
    await endOf(run, at);
    const looks = await Promise.all(items.map((_, index) => run.send(`${at}/slots/${index}`)));
    expect(looks.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const heads = looks.map(({ json }) => looked.parse(json));
    expect(heads[0]).toMatchObject({ index: 0, id: "short", status: "completed", error: null, waiting_for: null });
    expect(heads[0]).toMatchObject({ prompt_head: "short", result_head: "short" });
    expect(heads[1]).toMatchObject({ prompt_head: `${"x".repeat(600)}…`, result_head: `${"x".repeat(600)}…` });
    expect(heads[2]?.prompt_head).toBe("hi");
    expect(heads[3]).toMatchObject({ status: "failed", prompt_head: "{{status/400}} refused", result_head: null });
    for (const look of looks) expect(look.text.length).toBeLessThan(3_000);
  });

  it("shows a call of a graph with the prompt of its task as it was sent", async () => {
    const tasks = [
      { id: "find", prompt: '{"items":["a","b"]}' },
      { id: "each", foreach: "{{find.output.json.items}}", prompt: "Is {{item}} true?" },
    ];
    const opened = z.looseObject({ id: z.string() }).parse((await run.send("/dag", { json: { tasks } })).json);
    const look = await run.send(`/groups/${opened.id}/slots/2`);
    expect(look.json).toMatchObject({ id: "each", prompt_head: "Is {{item}} true?", result_head: "Is b true?" });
  });

  it("is not there for an index that no call has, nor for another run", async () => {
    const { at } = await openGroup(run, { prompts: ["a", "b"] });
    await endOf(run, at);
    const other = await world.openRun();
    for (const answer of [
      await run.send(`${at}/slots/2`),
      await run.send(`${at}/slots/x`),
      await other.send(`${at}/slots/0`),
    ]) {
      expect([answer.status, errorOf(answer).code]).toEqual([404, "not_found"]);
    }
  });
});

describe("GET /groups/:id/results", () => {
  const prompts = Array.from({ length: 60 }, (_, index) => `{{${index < 20 ? "delay/0" : "latch/pages"}}} ${index}`);

  it("pages through a group in input order, while it runs and after", async () => {
    const { at } = await openGroup(run, { prompts, concurrency: 8 });
    await expect.poll(async () => ended(await run.send(`${at}/results?limit=60`))).toBeGreaterThan(8);
    const during = await pagesOf(run, at, 7);
    expect(during.map(({ index }) => index)).toEqual(prompts.map((_, index) => index));
    const open = during.filter(({ status }) => status === "running" || status === "queued");
    expect(open.length).toBeGreaterThan(0);
    for (const { result, error, usage } of open) expect([result, error, usage]).toEqual([null, null, null]);
    const done = during.filter(({ status }) => status === "completed");
    expect(done.map(({ result }) => result)).toEqual(done.map(({ index }) => prompts[index]));
    world.upstream.open("pages");
    await endOf(run, at);
    const after = await pagesOf(run, at, 7);
    expect(after.map(({ result }) => result)).toEqual(prompts);
  });

  it("has 100 slots per page by default, and a cursor to the next page", async () => {
    const { at } = await openGroup(run, { prompts: Array.from({ length: 101 }, (_, index) => `${index}`) });
    await endOf(run, at);
    const first = page.parse((await run.send(`${at}/results`)).json);
    expect([first.data.length, first.has_more, first.next_after]).toEqual([100, true, 99]);
    const second = page.parse((await run.send(`${at}/results?after=99`)).json);
    expect([second.data.map(({ result }) => result), second.has_more, second.next_after]).toEqual([
      ["100"],
      false,
      null,
    ]);
    const none = page.parse((await run.send(`${at}/results?after=5000`)).json);
    expect([none.data, none.has_more]).toEqual([[], false]);
  });

  it("has fewer slots per page if they are large, and loses none", async () => {
    const large = Array.from({ length: 8 }, (_, index) => `${index}${"x".repeat(60_000)}`);
    const { at } = await openGroup(run, { prompts: large });
    await endOf(run, at);
    const first = page.parse((await run.send(`${at}/results`)).json);
    expect(first.has_more).toBe(true);
    expect((await pagesOf(run, at, 100)).map(({ result }) => result)).toEqual(large);
  });

  it("has the ids and errors of the items", async () => {
    const items = [{ id: "x", prompt: "a" }, { prompt: "{{status/400}}" }];
    const { at } = await openGroup(run, { items });
    await endOf(run, at);
    expect(await pagesOf(run, at, 1)).toMatchObject([
      { id: "x", result: "a", error: null },
      { id: null, result: expect.stringMatching(/^\[error\]/), error: { code: "upstream_error", status: 400 } },
    ]);
  });

  it.each(["after=-2", "after=x", "limit=0", "limit=1001", "limit=2.5", "page=1"])("refuses %s", async (query) => {
    const { at } = await openGroup(run, { prompts: ["a"] });
    const answer = await run.send(`${at}/results?${query}`);
    expect([answer.status, errorOf(answer).param]).toEqual([400, query.split("=")[0]]);
  });

  it.each(["application/x-ndjson", "text/event-stream"])(
    "as %s sends each slot of a running group once",
    async (accept) => {
      const name = accept.replaceAll(/\W/g, "-");
      const { id, at } = await openGroup(run, { prompts: [`{{latch/${name}-0}} a`, "b", `{{latch/${name}-2}} c`] });
      // The second one has ended when the reader comes, the others have not.
      await expect.poll(async () => ended(await run.send(`${at}/results`))).toBe(1);
      const open = (slot: number) => world.upstream.open(`${name}-${slot}`);
      // Each of the others ends once the one before it has arrived.
      const events = await streamed(at, accept, ({ index }) =>
        index === 1 ? open(2) : index === 2 ? open(0) : undefined,
      );
      expect(events.map(({ type, index }) => [type, index])).toEqual([
        ["group_started", undefined],
        ["slot", 1],
        ["slot", 2],
        ["slot", 0],
        ["group_completed", undefined],
      ]);
      expect(new Set(events.map(({ parallel_group_id }) => parallel_group_id))).toEqual(new Set([id]));
    },
  );

  it.each(["application/x-ndjson", "text/event-stream"])(
    "as %s sends for an ended group what it sent live",
    async (accept) => {
      const live = await run.send("/batch", { json: { prompts: MIXED }, headers: { accept } });
      const id = /"parallel_group_id":"([^"]+)"/.exec(live.text)?.[1] ?? "";
      expect((await run.send(`/groups/${id}/results`, { headers: { accept } })).text).toBe(live.text);
      expect((await run.send(`/groups/${id}`, { headers: { accept } })).text).toBe(live.text);
    },
  );

  /** The events of a group; `arrived` gets each when it arrives. */
  async function streamed(at: string, accept: string, arrived: (event: Event) => void): Promise<Event[]> {
    const response = await world.gateway.fetch(`${at}/results`, { token: run.token, headers: { accept } });
    const events: Event[] = [];
    for await (const text of accept === "text/event-stream" ? dataOf(response) : linesOf(response)) {
      const next = event.parse(JSON.parse(text));
      events.push(next);
      arrived(next);
    }
    return events;
  }
});

async function* dataOf(response: Response): AsyncGenerator<string> {
  for await (const { data } of framesOf(response)) yield data;
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body ?? []) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line.trim() !== "");
  }
}

describe("GET /groups/:id/report", () => {
  it("has tables of agents, of failures with actions, and of measures", { tags: ["slow"] }, async () => {
    const items = [
      { id: "reviewer", prompt: "fine | <b>&co</b>\nsecond line" },
      { id: "tester", prompt: "{{status/400}}" },
      { prompt: "{{status/503}}" },
    ];
    const { id, at } = await openGroup(run, { items });
    await endOf(run, at);
    const answer = await run.send(`${at}/report`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/markdown; charset=utf-8"]);
    const rows = answer.text.split("\n");
    expect(rows[0]).toBe(`# Group ${id}: partial`);
    expect(rows).toContain("| Agent | Status | Output Location | Key Findings |");
    expect(rows).toContain("| tester | FAILED | - | - |");
    expect(rows.filter((row) => row.startsWith("| reviewer | COMPLETE |"))).toEqual([
      `| reviewer | COMPLETE | /groups/${id}/results?after=-1&limit=1 | fine \\| &lt;b\\>&amp;co&lt;/b\\> second line |`,
    ]);
    expect(rows).toContain("| Agent | Error | Impact | Action |");
    // Which marks of a message Markdown needs escaped is not what a reader relies on.
    const read = rows.map((row) => row.replaceAll("\\", ""));
    expect(read.filter((row) => /^\| tester \| upstream_error: .* \| Skip \|$/.test(row))).toHaveLength(1);
    expect(read.filter((row) => /^\| 2 \| upstream_error: .* after 3 attempt.* \| Retry \|$/.test(row))).toHaveLength(
      1,
    );
    for (const measure of ["Agents | 3", "Completed | 1", "Peak parallel", "Speed-up", "Success rate", "Cost | $0."]) {
      expect(answer.text).toContain(`| ${measure}`);
    }
    const at0 = await run.send(`${at}/results?after=-1&limit=1`);
    expect(page.parse(at0.json).data[0]?.result).toBe(items[0]?.prompt);
  });

  it("of a running group counts running and queued slots", async () => {
    const { at } = await openGroup(run, { prompts: [SLOW, SLOW], concurrency: 1 });
    await expect.poll(() => world.upstream.counters.inFlight).toBe(1);
    const { text } = await run.send(`${at}/report`);
    expect(text).toContain("| 0 | RUNNING | - | - |");
    expect(text).toContain("| 1 | QUEUED | - | - |");
    await run.send(at, { method: "DELETE" });
  });
});

const slot = z.looseObject({ index: z.int(), status: z.string(), result: z.unknown(), error: z.unknown() });
type Slot = z.infer<typeof slot>;
const page = z.strictObject({
  object: z.literal("list"),
  data: z.array(slot),
  has_more: z.boolean(),
  next_after: z.int().nullable(),
});
const event = z.looseObject({ type: z.string(), index: z.int().optional(), parallel_group_id: z.string() });
type Event = z.infer<typeof event>;

function ended(answer: Answer): number {
  return page.parse(answer.json).data.filter(({ status }) => status === "completed").length;
}

/** All slots of a group, by following the cursor. */
async function pagesOf(access: RunAccess, at: string, limit: number): Promise<Slot[]> {
  const slots: Slot[] = [];
  for (let after: number | null = -1; after !== null;) {
    const answer: Answer = await access.send(`${at}/results?limit=${limit}&after=${after}`);
    const { data, has_more, next_after } = page.parse(answer.json);
    expect(data.length).toBeLessThanOrEqual(limit);
    expect(has_more).toBe(next_after !== null);
    slots.push(...data);
    after = next_after;
  }
  return slots;
}

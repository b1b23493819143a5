/** The search in names, prompts, answers and errors: over the list of runs, and in one run. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { SEARCH_CALLS_MAX, SEARCH_MATCHES_MAX, SEARCH_RUNS_MAX, SEARCH_TEXT_CHARS_MAX } from "../../src/limits.ts";
import { openGroup } from "./following.ts";
import { errorOf, groupOf, startWorld, type RunAccess, type World } from "./world.ts";

const VIEW_KEY = "the key of the viewers of these tests";

let world: World;
beforeAll(async () => void (world = await startWorld(undefined, { VIEW_KEY })));
afterAll(() => world.stop());

const match = z.object({
  where: z.string(),
  group: z.string().nullable(),
  index: z.number().nullable(),
  excerpt: z.string(),
});
const searched = z.object({
  runs: z.number(),
  calls: z.number(),
  older: z.number().nullable(),
  in_part: z.array(z.string()),
  unread_prompts: z.number(),
});
const list = z.object({
  data: z.array(z.looseObject({ id: z.string(), match })),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
  search: searched,
});
const found = z.object({
  data: z.array(match.extend({ call_id: z.string().nullable() })),
  calls: z.number(),
  has_more: z.boolean(),
  next_cursor: z.string().nullable(),
});

/** A word that no other test has. */
const word = (): string => `w${crypto.randomUUID().replaceAll("-", "")}`;

async function listed(search: string, more = ""): Promise<z.infer<typeof list>> {
  const { status, json } = await world.sendAsOperator(`/runs?search=${encodeURIComponent(search)}${more}`);
  expect(status).toBe(200);
  return list.parse(json);
}

async function foundIn(run: RunAccess, search: string, cursor = ""): Promise<z.infer<typeof found>> {
  const { status, json } = await run.send(`/runs/${run.id}/search?search=${encodeURIComponent(search)}${cursor}`);
  expect(status).toBe(200);
  return found.parse(json);
}

/** Of the runs that are opened from now on, and no others. */
const fromNow = (): string => `&opened_after=${new Date(Date.now() - 1).toISOString()}`;

/** Every page of a search over runs: the ids of those found, and how many runs were looked at. */
async function allListed(search: string, more = ""): Promise<{ ids: string[]; runs: number }> {
  const ids: string[] = [];
  let runs = 0;
  for (let cursor = ""; ;) {
    const page = await listed(search, `${more}${cursor}`);
    ids.push(...page.data.map(({ id }) => id));
    runs += page.search.runs;
    if (page.next_cursor === null) return { ids, runs };
    cursor = `&cursor=${page.next_cursor}`;
  }
}

describe("GET /runs?search=", () => {
  it(
    "finds runs by a text in their name, a prompt, an answer or an error of their calls, newest first",
    { tags: ["slow"] },
    async () => {
      const [text, since] = [word(), fromNow()];
      const named = await world.openRun({ name: `about ${text}` });
      const prompted = await world.openRun({ default_model: "up-1" });
      await prompted.send("/batch", { json: { prompts: ["a", `Where is ${text.toUpperCase()}, "quoted"?`] } });
      const answered = await world.openRun({ default_model: "up-1" });
      // What all calls of a batch share is stored once.
      await answered.send("/batch", { json: { items: [{ prompt: "b" }], system: `Mind ${text}.` } });
      const failed = await world.openRun({ default_model: "up-1" });
      await failed.send("/batch", { json: { items: [{ id: `item ${text}`, prompt: "c" }] } });
      const none = await world.openRun({ default_model: "up-1" });
      await none.send("/batch", { json: { prompts: ["none of it"] } });
      const page = await listed(text, since);
      expect(page.data.map(({ id, match: { where, index } }) => [id, where, index])).toEqual([
        [failed.id, "name", 0],
        [answered.id, "prompt", 0],
        [prompted.id, "prompt", 1],
        [named.id, "name", null],
      ]);
      expect(page.data[2]?.match.excerpt).toBe(`Where is ${text.toUpperCase()}, "quoted"?`);
      expect([page.has_more, page.search.older, page.search.in_part]).toEqual([false, 0, []]);
      expect(page.search.runs).toBeGreaterThanOrEqual(5);
    },
  );

  it("finds texts of answers and of errors that the prompt does not have", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const { json } = await run.send("/batch", { json: { prompts: ["{{status/418}} x", "fine"] } });
    const { errors, results } = groupOf({ status: 200, headers: new Headers(), text: "", json });
    expect(errors[0]?.message).toContain("418");
    const [byError] = (await foundIn(run, "418")).data;
    expect(byError).toMatchObject({ where: "prompt", index: 0 });
    const [byMessage] = (await foundIn(run, errors[0]?.code ?? "")).data;
    expect(byMessage).toMatchObject({ where: "error", index: 0 });
    const answer = String(results[1]);
    const own = (await foundIn(run, answer)).data.find(({ index }) => index === 1);
    expect(own?.excerpt).toContain(answer);
  });

  it("finds the error of a single call, whose texts are not stored, in the log", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const text = word();
    const failed = await run.send("/query", { json: { prompt: `{{status/400}} ${text}` } });
    const { code } = errorOf(failed);
    const { data } = await foundIn(run, `${code}: `);
    expect(data).toEqual([
      { where: "error", group: null, index: null, call_id: expect.any(String), excerpt: expect.stringContaining(code) },
    ]);
    expect((await foundIn(run, text)).data).toEqual([]);
  });

  it("goes with the other filters, and asks no run that these leave out", async () => {
    const [text, since] = [word(), fromNow()];
    const run = await world.openRun({ name: text, default_model: "up-1" });
    const other = await world.openRun({ default_model: "up-1" });
    await other.send("/batch", { json: { prompts: [text] } });
    expect((await allListed(text, `${since}&status=closed`)).ids).toEqual([]);
    expect((await allListed(text, `${since}&name=${text}`)).ids).toEqual([run.id]);
    expect((await allListed(text, `${since}&view=summary`)).ids).toEqual([other.id, run.id]);
    const none = await listed(word(), `${since}&status=escalated`);
    expect([none.data, none.search.calls]).toEqual([[], 0]);
  });

  it("says how far it has searched, and goes on behind that", { tags: ["slow"] }, async () => {
    const text = word();
    const oldest = await world.openRun({ default_model: "up-1" });
    await oldest.send("/batch", { json: { prompts: [text] } });
    const more = SEARCH_RUNS_MAX + 10;
    for (let opened = 0; opened < more; opened += 10)
      await Promise.all(Array.from({ length: 10 }, () => world.openRun({})));
    const first = await listed(text, "&view=summary");
    expect([first.data, first.has_more, first.search.runs]).toEqual([[], true, SEARCH_RUNS_MAX]);
    expect(first.search.older).toBeGreaterThanOrEqual(more - SEARCH_RUNS_MAX + 1);
    const second = await listed(text, `&view=summary&cursor=${first.next_cursor}`);
    expect(second.data.map(({ id }) => id)).toEqual([oldest.id]);
    expect([second.has_more, second.search.runs]).toEqual([false, first.search.older]);
  });

  it("ends a page at its limit, and finds each run once over its pages", async () => {
    const [text, since] = [word(), fromNow()];
    const ids: string[] = [];
    for (let at = 0; at < 5; at++) ids.unshift((await world.openRun({ name: `${text} ${at}` })).id);
    const first = await listed(text, "&limit=2");
    expect([first.data.map(({ id }) => id), first.has_more]).toEqual([ids.slice(0, 2), true]);
    expect(first.search.older).toBeGreaterThanOrEqual(3);
    expect((await allListed(text, `${since}&limit=2`)).ids).toEqual(ids);
  });

  it("finds nothing of a run that was deleted, or keeps nothing", async () => {
    const [text, since] = [word(), fromNow()];
    const run = await world.openRun({ name: text, default_model: "up-1", retention_s: 0 });
    await run.send("/batch", { json: { prompts: [text] } });
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    await expect.poll(async () => (await allListed(text, since)).ids, { timeout: 20_000 }).toEqual([]);
    expect((await world.sendAsOperator(`/runs/${run.id}/search?search=${text}`)).status).toBe(404);
  });

  it.each([
    ["no text", "search="],
    ["one character", "search=x"],
    ["a text that is too long", `search=${"x".repeat(SEARCH_TEXT_CHARS_MAX + 1)}`],
  ])("refuses %s", async (_, query) => {
    const refused = await world.sendAsOperator(`/runs?${query}`);
    expect([refused.status, errorOf(refused).param]).toEqual([400, "search"]);
  });

  it("is not for viewers, who would learn what prompts say; nor for a run's token", async () => {
    const run = await world.openRun({});
    for (const path of ["/runs?search=what", `/runs/${run.id}/search?search=what`]) {
      const refused = await world.send(path, { token: VIEW_KEY });
      expect([path, refused.status, errorOf(refused).message]).toEqual([
        path,
        403,
        expect.stringContaining("VIEW_KEY"),
      ]);
    }
    expect((await run.send("/runs?search=what")).status).toBe(403);
  });
});

describe("GET /runs/:id/search", () => {
  it("has each call with the text once, the newest group first, with where the text is", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const text = word();
    const first = groupOf(await run.send("/batch", { json: { prompts: [`a ${text} b`, "none", text] } }));
    const second = groupOf(await run.send("/batch", { json: { prompts: ["none", text] } }));
    const { data, calls, has_more } = await foundIn(run, text);
    expect(data.map(({ group, index, where }) => [group, index, where])).toEqual([
      [second.id, 1, "prompt"],
      [first.id, 0, "prompt"],
      [first.id, 2, "prompt"],
    ]);
    expect([data[1]?.excerpt, calls, has_more]).toEqual([`a ${text} b`, 5, false]);
  });

  it("reads messages, parts of them and whole requests, and no names of fields", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const text = word();
    const items = [
      { messages: [{ role: "user", content: [{ type: "text", text: `é ${text}` }] }] },
      { messages: [{ role: "user", content: "none" }] },
      {
        messages: [
          { role: "system", content: text },
          { role: "user", content: "x" },
        ],
      },
    ];
    await run.send("/batch", { json: { items } });
    expect((await foundIn(run, `É ${text}`)).data.map(({ index }) => index)).toEqual([0]);
    expect((await foundIn(run, text)).data.map(({ index }) => index)).toEqual([0, 2]);
    expect((await foundIn(run, "content")).data).toEqual([]);
  });

  it("finds the prompts of tasks of a graph at their slots", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const text = word();
    const tasks = [
      { id: "one", prompt: "plain" },
      { id: "two", prompt: `after it ${text}`, dependencies: ["one"] },
    ];
    const graph = await run.send("/dag", { json: { tasks } });
    expect([graph.status, graph.text]).toEqual([200, expect.any(String)]);
    expect((await foundIn(run, text)).data).toMatchObject([{ where: "prompt", index: 1 }]);
  });

  it(
    "looks at a bounded number of calls and goes on behind them; the list says what it left",
    { tags: ["slow"] },
    async () => {
      const since = fromNow();
      const run = await world.openRun({ default_model: "up-1" });
      await world.sendAsOperator(`/runs/${run.id}`, { method: "PATCH", json: { paused: true } });
      const text = word();
      const copies = SEARCH_CALLS_MAX + 7;
      const { at } = await openGroup(run, { prompt: text, n: copies });
      const first = await foundIn(run, word());
      expect([first.data, first.calls, first.has_more]).toEqual([[], SEARCH_CALLS_MAX, true]);
      const rest = await foundIn(run, word(), `&cursor=${first.next_cursor}`);
      expect([rest.calls, rest.has_more]).toEqual([7, false]);
      const matches = await foundIn(run, text);
      expect([matches.data.length, matches.data.at(-1)?.index, matches.has_more]).toEqual([
        SEARCH_MATCHES_MAX,
        SEARCH_MATCHES_MAX - 1,
        true,
      ]);
      const next = await foundIn(run, text, `&cursor=${matches.next_cursor}`);
      expect(next.data[0]?.index).toBe(SEARCH_MATCHES_MAX);
      expect((await listed(word(), since)).search.in_part).toContain(run.id);
      await run.send(at, { method: "DELETE" });
    },
  );

  it("is for the run and those above it, and another run finds no such run", async () => {
    const run = await world.openRun({ budget: { usd: 1 }, default_model: "up-1" });
    const child = z
      .looseObject({ id: z.string(), token: z.string() })
      .parse((await run.send("/runs", { json: { budget: { usd: 0.5 } } })).json);
    const text = word();
    await world.send("/batch", { token: child.token, json: { prompts: [text] } });
    const below = await run.send(`/runs/${child.id}/search?search=${text}`);
    expect(found.parse(below.json).data).toHaveLength(1);
    const other = await world.openRun({});
    expect((await other.send(`/runs/${run.id}/search?search=${text}`)).status).toBe(404);
    const wrong = await run.send(`/runs/${run.id}/search?search=${text}&cursor=x`);
    expect([wrong.status, errorOf(wrong).param]).toEqual([400, "cursor"]);
  });
});

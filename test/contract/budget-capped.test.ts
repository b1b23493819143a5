/** An answer that the budget cut says so, wherever it is read; no other does. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { startWorld, type Answer, type RunAccess, type World } from "./world.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.upstream.forget());
afterAll(() => world.stop());

/** The upstream repeats its prompt, a token for each four characters: 100 tokens, and the run pays for 40. */
const LONG = { prompt: "x".repeat(400), max_tokens: 1_000 };
const open = (model = "up-1") => world.openRun({ budget: { completion_tokens: 40 }, default_model: model });
const CUT = { finish_reason: "length", capped_by: "budget" };

const slots = z.looseObject({ items: z.array(z.looseObject({})) });
const page = z.looseObject({ data: z.array(z.looseObject({})) });

/** The log's lines of one type. */
async function logged(run: RunAccess, type: string): Promise<unknown[]> {
  const { text } = await run.send(`/runs/${run.id}/log`);
  const lines = text
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
  return lines.filter((line) => z.looseObject({ event_type: z.string() }).parse(line).event_type === type);
}

describe("an answer whose cap the budget lowered", () => {
  it("is marked on /query, and in the log", async () => {
    const run = await open();
    expect((await run.send("/query", { json: LONG })).json).toMatchObject({ text: "x".repeat(160), ...CUT });
    expect(await logged(run, "attempt_ended")).toMatchObject([{ outcome: "success", capped_by: "budget" }]);
    expect(await logged(run, "slot_completed")).toMatchObject([{ status: "completed", ...CUT }]);
  });

  it("is marked in the items of a batch, and on the pages of its group", async () => {
    const run = await open();
    const answer = await run.send("/batch", { json: { items: [LONG] } });
    expect(slots.parse(answer.json).items).toMatchObject([CUT]);
    const { id } = z.looseObject({ id: z.string() }).parse(answer.json);
    expect(page.parse((await run.send(`/groups/${id}/results`)).json).data).toMatchObject([CUT]);
  });

  it("is marked in the lines of a streamed batch", async () => {
    const run = await open();
    const answer = await run.send("/batch", { json: { items: [LONG] }, headers: { accept: "application/x-ndjson" } });
    const lines = answer.text
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lines).toContainEqual(expect.objectContaining({ type: "slot", ...CUT }));
  });

  it("is still marked when a client replays it with its idempotency key", async () => {
    const run = await open();
    const request = { json: LONG, headers: { "idempotency-key": "k" } };
    expect((await run.send("/query", request)).json).toMatchObject(CUT);
    expect((await run.send("/query", request)).json).toMatchObject(CUT);
  });

  it("is marked on /v1 in a header, because the body is the upstream's own", async () => {
    const json = { model: "sim/echo", messages: [{ role: "user", content: LONG.prompt }], max_tokens: 1_000 };
    const send = async (run: RunAccess): Promise<Answer> => run.send("/v1/chat/completions", { json });
    const cut = await send(await open("sim/echo"));
    expect([cut.status, cut.headers.get("x-fanout-capped-by")]).toEqual([200, "budget"]);
    const whole = await send(await world.openRun({ budget: { completion_tokens: 4_000 } }));
    expect([whole.status, whole.headers.get("x-fanout-capped-by")]).toEqual([200, null]);
  });
});

describe("an answer that the budget did not shorten", () => {
  it("is not marked, whether it ends before the lowered cap or at the client's own cap", async () => {
    const run = await open();
    const short = await run.send("/query", { json: { prompt: "short", max_tokens: 1_000 } });
    expect(short.json).toMatchObject({ finish_reason: "stop" });
    const own = await run.send("/query", { json: { prompt: LONG.prompt, max_tokens: 16 } });
    expect(own.json).toMatchObject({ finish_reason: "length" });
    for (const { json } of [short, own]) expect(json).not.toHaveProperty("capped_by");
    for (const line of await logged(run, "slot_completed")) expect(line).not.toHaveProperty("capped_by");
  });
});

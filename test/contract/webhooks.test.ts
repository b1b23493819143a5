/** Webhooks of runs and groups: signed, delivered until they are accepted, also by a gateway that was killed meanwhile. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { startWebhookReceiver, type Delivery, type WebhookReceiver } from "../support/webhook-receiver.ts";
import { startRestarting } from "./restarting.ts";
import { errorOf, startWorld, type RunAccess, type World } from "./world.ts";

const SECRET = `whsec_${Buffer.from("a secret of the operator").toString("base64")}`;
/** Long, for a machine that is busy: the third delivery is due 15 seconds after the first. */
const DELIVERED_MS = 90_000;

const event = z.strictObject({
  id: z.string(),
  object: z.literal("event"),
  created_at: z.int(),
  type: z.string(),
  data: z.looseObject({ id: z.string() }),
});

const readEvent = ({ body }: Delivery) => event.parse(JSON.parse(body));

/** The events that name a run or a group of it, in the order of their deliveries. */
function eventsOf({ deliveries }: WebhookReceiver, run: RunAccess) {
  return deliveries
    .map(readEvent)
    .filter(({ data }) => data.id === run.id || data["run_id"] === run.id)
    .map(({ id, type, data }) => ({ id, type, data }));
}

const until = (check: () => void) => vi.waitFor(check, { timeout: DELIVERED_MS, interval: 50 });

const failing = { id: "lead", prompt: "{{status/400}} no", tier: "P0" };
const groupId = (json: unknown) => z.looseObject({ id: z.string() }).parse(json).id;

let world: World;
let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver(() => 200);
  world = await startWorld(undefined, { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: SECRET });
});
afterAll(async () => {
  await world.stop();
  await receiver.stop();
});

describe("the webhook of a run", () => {
  it("is notified of the first P0 call that fails in a group while the others run, and of the run's end", async () => {
    const run = await world.openRun({ default_model: "up-1", webhook: { on_end: true, on_escalation: true } });
    const items = [failing, { prompt: "fine", tier: "P1" }, { ...failing, id: "second" }];
    const { json } = await run.send("/batch", { json: { items } });
    const id = groupId(json);
    const escalated = {
      id: `evt_${id}_escalated`,
      type: "group.escalated",
      data: {
        id,
        run_id: run.id,
        index: expect.toSatisfy((at) => at === 0 || at === 2),
        tier: "P0",
        code: "upstream_error",
      },
    };
    await until(() => expect(eventsOf(receiver, run)).toEqual([escalated]));
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    const ended = { id: `evt_${run.id}_ended`, type: "run.ended", data: { id: run.id, status: "closed" } };
    await until(() => expect(eventsOf(receiver, run)).toEqual([escalated, ended]));
  });

  it("has the form and the signature that OpenAI's client checks", async () => {
    const run = await world.openRun({ webhook: { on_end: true } });
    await run.send(`/runs/${run.id}`, { method: "DELETE" });
    await until(() => expect(eventsOf(receiver, run)).toHaveLength(1));
    const [sent] = receiver.deliveries.filter(({ body }) => body.includes(run.id));
    const { webhooks } = new OpenAI({ apiKey: "k" });
    expect(await webhooks.unwrap(sent?.body ?? "", sent?.headers ?? {}, SECRET)).toMatchObject({
      type: "run.ended",
      data: { id: run.id, status: "cancelled" },
    });
    expect(sent?.headers["webhook-id"]).toBe(`evt_${run.id}_ended`);
    await expect(webhooks.unwrap(`${sent?.body} `, sent?.headers ?? {}, SECRET)).rejects.toThrow();
  });

  it("is in the document of the run, and null for one that asks for nothing", async () => {
    const run = await world.openRun({ webhook: { on_escalation: true } });
    const plain = await world.openRun({ webhook: { on_end: false } });
    const webhookOf = async (each: RunAccess) => (await world.sendAsOperator(`/runs/${each.id}`)).json;
    expect(await webhookOf(run)).toMatchObject({ webhook: { on_end: false, on_escalation: true } });
    expect(await webhookOf(plain)).toMatchObject({ webhook: null });
    const child = await run.send("/runs", { json: { webhook: { on_end: true } } });
    expect(child.json).toMatchObject({ webhook: { on_end: true, on_escalation: false } });
  });

  it("is notified of a child run that asks for it, and of nothing that nobody asks for", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    await run.send("/batch", { json: { items: [failing] } });
    const { json } = await run.send("/runs", { json: { webhook: { on_end: true, on_escalation: false } } });
    const child = z.looseObject({ id: z.string(), token: z.string() }).parse(json);
    await world.send("/batch", { token: child.token, json: { items: [{ ...failing, model: "up-1" }] } });
    await world.sendAsOperator(`/runs/${run.id}/close`, { method: "POST" });
    await until(() => expect(receiver.deliveries.map(readEvent).map(({ data }) => data.id)).toContain(child.id));
    const ids = [run.id, child.id];
    const named = receiver.deliveries
      .map(readEvent)
      .filter(({ data }) => ids.some((id) => JSON.stringify(data).includes(id)));
    expect(named.map(({ type, data }) => [type, data.id])).toEqual([["run.ended", child.id]]);
  });
});

describe("the webhook of a group", () => {
  it("is notified of the end of a batch, of a graph and of a plan that streams, with their status", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const webhook = { on_end: true };
    const batch = await run.send("/batch", { json: { prompts: ["a", "{{status/400}} b"], webhook } });
    const graph = await run.send("/dag", { json: { tasks: [{ id: "t", prompt: "c" }], webhook } });
    const goal = `One task a line:\n${JSON.stringify({ id: "t", prompt: "d" })}`;
    const planned = await run.send("/plan", { json: { goal, planner_model: "sim/echo", stream: true, webhook } });
    const endedAs = (json: unknown, status: string) => {
      const id = groupId(json);
      return { id: `evt_${id}_ended`, type: "group.ended", data: { id, run_id: run.id, status } };
    };
    const all = [endedAs(batch.json, "partial"), endedAs(graph.json, "completed"), endedAs(planned.json, "completed")];
    await until(() => expect(eventsOf(receiver, run)).toHaveLength(3));
    expect(eventsOf(receiver, run)).toEqual(expect.arrayContaining(all));
  });

  it("is notified of a vote that decides nothing", async () => {
    const run = await world.openRun({ default_model: "up-1" });
    const aggregate = { strategy: "vote", escalate: {} };
    const webhook = { on_escalation: true };
    const { json } = await run.send("/batch", { json: { prompts: ["yes", "no"], aggregate, webhook } });
    const id = groupId(json);
    const data = { id, run_id: run.id, index: null, tier: null, code: "vote_undecided" };
    await until(() =>
      expect(eventsOf(receiver, run)).toEqual([{ id: `evt_${id}_escalated`, type: "group.escalated", data }]),
    );
  });
});

it(
  "is delivered again, also by a gateway that was killed between two tries, and then the run may be deleted",
  { tags: ["slow"] },
  async () => {
    const refusing = await startWebhookReceiver((tries) => (tries <= 2 ? 503 : 200));
    onTestFinished(() => refusing.stop());
    const restarting = await startRestarting();
    onTestFinished(() => restarting.stop());
    const vars = { WEBHOOK_URL: refusing.url, WEBHOOK_SECRET: SECRET };
    await restarting.restart(vars);
    const run = await restarting.openRun({ default_model: "up-1", retention_s: 0, webhook: { on_escalation: true } });
    await run.send("/batch", { json: { items: [failing] } });
    await run.send(`/runs/${run.id}/close`, { method: "POST" });
    await until(() => expect(refusing.deliveries).toHaveLength(1));
    expect((await run.send("/run")).status).toBe(200);
    await restarting.restart(vars);
    await until(() => expect(refusing.deliveries.length).toBeGreaterThanOrEqual(3));
    const ids = new Set(refusing.deliveries.map(({ headers }) => headers["webhook-id"]));
    expect(ids.size).toBe(1);
    expect(new Set(refusing.deliveries.map(({ body }) => body)).size).toBe(1);
    await vi.waitFor(async () => expect((await run.send("/run")).status).toBe(404), {
      timeout: DELIVERED_MS,
      interval: 200,
    });
    expect(refusing.deliveries).toHaveLength(3);
  },
);

it("is refused by a gateway that has none, and costs nothing", async () => {
  const plain = await startWorld();
  onTestFinished(() => plain.stop());
  const webhook = { on_end: true };
  const opened = await plain.sendAsOperator("/runs", { json: { webhook } });
  const run = await plain.openRun({ default_model: "up-1" });
  const answers = [
    opened,
    await run.send("/runs", { json: { webhook } }),
    await run.send("/batch", { json: { prompts: ["a"], webhook } }),
    await run.send("/dag", { json: { tasks: [{ id: "t", prompt: "a" }], webhook } }),
    await run.send("/plan", { json: { goal: "a", webhook } }),
  ];
  for (const answer of answers) {
    const { code, param, message } = errorOf(answer);
    expect([answer.status, code, param, message]).toEqual([
      400,
      "invalid_request",
      "webhook",
      expect.stringContaining("WEBHOOK_URL"),
    ]);
  }
  expect(plain.upstream.counters.requests).toBe(0);
  expect((await run.send("/batch", { json: { prompts: ["a"], webhook: { on_end: false } } })).status).toBe(200);
});

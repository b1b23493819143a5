/**
 * The whole message of an answer is what `/v1` returns for the same call wherever an answer is kept, and however it comes: replayed, from a
 * cassette, from the rows of a gateway that was killed, in a batch of its provider, from a pull worker, from the judge of a panel.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { BatchProvider } from "../support/batch-provider.ts";
import { SPEAKERS, type Speaker } from "../support/speakers.ts";
import { endOf, openGroup } from "./following.ts";
import {
  expectSame,
  forEachSpeaker,
  groupWithMessages,
  startSpeakers,
  viaV1,
  WAYS,
  withMessage,
  type Message,
  type SpeakingWorld,
} from "./message-world.ts";
import type { RunAccess } from "./world.ts";

const provider = new BatchProvider();
let world: SpeakingWorld;
let dataDir: string;
beforeAll(async () => {
  await provider.start();
  provider.behave({ bodyOf: (model) => SPEAKERS.find(({ name }) => name === model)?.body ?? null });
  dataDir = await mkdtemp(join(tmpdir(), "fanout-messages-"));
  const more = { batches: provider.upstreams(0).up, agents: { kind: "pull" } };
  const PANEL = { panel: ["sim/echo", "sim/reverse"], judge: "deepseek-json/m" };
  world = await startSpeakers({ dataDir, more, vars: { PANEL } });
});
afterAll(async () => {
  await world.stop();
  await provider.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const FORMS = ["json", "stream"] as const;
const CHATS = SPEAKERS.filter(({ kind }) => kind === "openai");

/** The ways on which a call is made whose answer is kept; each asks what the others do not. */
const KEPT_WAYS = ["/query", "/batch", "/dag", "/groups/:id, its results as a page, as lines and as events"];

/** The messages of one call in each of the ways. */
async function onAllWays(run: RunAccess, model: string): Promise<Message[]> {
  const found: Message[] = [];
  for (const way of KEPT_WAYS) found.push(...((await WAYS[way]?.(run, model)) ?? []));
  expect(found.length).toBeGreaterThanOrEqual(KEPT_WAYS.length);
  return found;
}

const callsTo = (name: string): number => world.upstream.calls.filter(({ path }) => path.split("/")[1] === name).length;

/** A run whose requests belong to an epoch. */
const inEpoch = (run: RunAccess, epoch: string): RunAccess => ({
  ...run,
  send: (path, request = {}) =>
    run.send(path, { ...request, headers: { ...request.headers, "x-fanout-epoch": epoch } }),
});

describe("the message of each provider that is kept", () => {
  it("is replayed, at no cost, in single calls, groups and graphs", { tags: ["slow"] }, async () => {
    const [run, other] = [await world.openRun({ replay: "run" }), await world.openRun()];
    await forEachSpeaker(async (speaker) => {
      const expected = await viaV1(other, speaker);
      for (const form of FORMS) {
        const model = `${speaker.name}-${form}/m`;
        await onAllWays(inEpoch(run, "one"), model);
        const before = callsTo(speaker.name);
        for (const found of await onAllWays(inEpoch(run, "two"), model)) expectSame(speaker, found, expected, form);
        expect(callsTo(speaker.name)).toBe(before);
      }
    });
  });

  it("is on a cassette, whatever a call includes of it", { tags: ["slow"] }, async () => {
    const run = await world.openRun();
    await forEachSpeaker(async (speaker) => {
      const expected = await viaV1(run, speaker);
      for (const form of FORMS) {
        const model = (mode: string) => `${speaker.name}-${mode}${form === "stream" ? "-stream" : ""}/m`;
        const recorded = await onAllWays(run, model("record"));
        const before = callsTo(speaker.name);
        const played = await onAllWays(run, model("play"));
        // Another run: each has the answers of the tape once.
        const again = await world.openRun();
        const json = { prompt: "hi", model: model("play"), include: ["message"] };
        const included = withMessage.parse((await again.send("/query", { json })).json).message;
        for (const found of [...recorded, ...played, included]) expectSame(speaker, found, expected, form);
        expect(callsTo(speaker.name)).toBe(before);
      }
    });
  });

  it("is in the rows of a gateway that was killed", { tags: ["slow"] }, async () => {
    const run = await world.openRun();
    const speak = async (speaker: Speaker) => {
      const expected = await viaV1(run, speaker);
      const opened = await Promise.all(
        FORMS.map((form) => openGroup(run, { prompts: ["hi"], model: `${speaker.name}-${form}/m` })),
      );
      for (const { at } of opened) await endOf(run, at);
      return { speaker, expected, opened };
    };
    const kept = await Promise.all(SPEAKERS.map(speak));
    await world.restart();
    for (const { speaker, expected, opened } of kept) {
      for (const [at, form] of FORMS.entries()) {
        const { items } = groupWithMessages.parse((await endOf(run, opened[at]?.at ?? "")).json);
        for (const { message } of items) expectSame(speaker, message, expected, form);
      }
    }
  });
});

describe("the message of each provider of OpenAI's protocol", () => {
  it("comes whole from a batch of its provider", async () => {
    const run = await world.openRun();
    const items = CHATS.map(({ name }) => ({ prompt: "hi", model: `batches/${name}` }));
    const { at } = await openGroup(run, { items, service_tier: "batch", deadline_ms: 3_600_000 });
    const answer = await endOf(run, at);
    const { items: slots } = groupWithMessages.parse(answer.json);
    for (const [index, speaker] of CHATS.entries()) {
      const found = slots[index]?.message ?? { role: "assistant" as const };
      expectSame(speaker, found, await viaV1(run, speaker), "json");
      expect(answer.text).toContain(`"message":${speaker.message}`);
    }
    expect([provider.live, provider.batches.length]).toEqual([[], CHATS.length]);
  });

  it("comes whole from a pull worker", { tags: ["slow"] }, async () => {
    const run = await world.openRun({ budget: { calls: 1_000, usd: 100 } });
    const claimed = z.looseObject({ items: z.tuple([z.looseObject({ lease_id: z.string() })]) });
    for (const speaker of CHATS) {
      const asked = run.send("/batch", { json: { prompts: ["hi"], model: "agents/m" } });
      const { json } = await run.send(`/runs/${run.id}/claim`, { json: { wait_ms: 60_000 } });
      const lease = claimed.parse(json).items[0].lease_id;
      const body = `{"lease_id":${JSON.stringify(lease)},"message":${speaker.message}}`;
      const headers = { "content-type": "application/json" };
      expect((await run.send(`/runs/${run.id}/complete`, { method: "POST", body, headers })).status).toBe(200);
      const answer = await asked;
      const { items } = groupWithMessages.parse(answer.json);
      for (const { message } of items) expectSame(speaker, message, await viaV1(run, speaker), "json");
      expect(answer.text).toContain(`"message":${speaker.message}`);
    }
  });
});

describe("the message of a panel", () => {
  const judge = SPEAKERS.find(({ name }) => name === "deepseek");
  const written = judge?.message ?? "the judge writes nothing";
  const delta = z.looseObject({ choices: z.array(z.looseObject({ delta: z.looseObject({}).optional() })) });

  it("is its judge's, on /query and on /v1", async () => {
    const run = await world.openRun();
    const json = { model: "fanout/panel", max_tokens: 100 };
    const query = await run.send("/query", { json: { ...json, prompt: "hi" } });
    expect(query).toMatchObject({ status: 200, text: expect.stringContaining(`"message":${written}`) });
    const chat = { ...json, messages: [{ role: "user", content: "hi" }] };
    const whole = await run.send("/v1/chat/completions", { json: chat });
    expect(whole.text).toContain(`"message":${written}`);
    expect(whole.json).toMatchObject({ object: "chat.completion", choices: [{ finish_reason: "tool_calls" }] });
  });

  it("is one delta of a stream, whose calls of tools have their places", async () => {
    const run = await world.openRun();
    const messages = [{ role: "user", content: "hi" }];
    const json = { model: "fanout/panel", max_tokens: 100, messages, stream: true };
    const { text } = await run.send("/v1/chat/completions", { json });
    const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
    const [first] = lines.map((line) => delta.parse(JSON.parse(line.slice(6))).choices[0]?.delta);
    const message = z.looseObject({ tool_calls: z.array(z.looseObject({})) }).parse(JSON.parse(written));
    const calls = message.tool_calls.map((call, index) => ({ index, ...call }));
    expect(first).toEqual({ ...message, tool_calls: calls });
  });
});

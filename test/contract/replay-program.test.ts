/**
 * A recursive program of a language model, as fast-rlm is one, whose agents were recorded: 19 agents of three levels make 165 calls,
 * each with everything that its agent has heard so far. Played again in a new run, it gets the same bytes and calls no upstream.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import type { Gateway } from "../support/gateway.ts";
import { answerOf, documentOf, startOwnGateway, startWorld, type RunAccess, type World } from "./world.ts";

/** The shape of a run of fast-rlm (MIT, sample_logs/lex_fridman): agent, its parent, the parent's step that opens it, its calls. */
const AGENTS: readonly (readonly [id: string, parent: string, step: number, calls: number])[] = [
  ["a0", "", 0, 16],
  ["a1", "a0", 10, 7],
  ["a2", "a0", 10, 8],
  ["a3", "a0", 10, 12],
  ["a4", "a0", 11, 3],
  ["a5", "a0", 11, 9],
  ["a6", "a0", 11, 4],
  ["a7", "a4", 2, 16],
  ["a8", "a6", 3, 9],
  ["a9", "a7", 7, 2],
  ["a10", "a0", 15, 11],
  ["a11", "a0", 15, 11],
  ["a12", "a0", 15, 2],
  ["a13", "a0", 15, 8],
  ["a14", "a12", 1, 6],
  ["a15", "a14", 3, 9],
  ["a16", "a11", 10, 6],
  ["a17", "a10", 8, 10],
  ["a18", "a16", 2, 16],
];
const CALLS = AGENTS.reduce((sum, [, , , calls]) => sum + calls, 0);
/** Programs that run at once, so that many calls do. */
const PROGRAMS = 4;

let world: World;
let answers = 0;
beforeAll(async () => {
  // No two answers are the same, and none takes as long as the one before: only a record can repeat them.
  world = await startWorld(() => ({ text: `answer ${(answers += 1)} «é😀»`, delayMs: (answers * 7) % 40 }));
});
afterAll(() => world.stop());

const completion = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string() }) })),
});

/** Plays an agent and those that it opens; returns all bytes that they were answered with. */
async function play(run: RunAccess, epoch: string, agent: string, heard: string, model = "up-1"): Promise<string[]> {
  const own = AGENTS.find(([id]) => id === agent);
  if (own === undefined) throw new Error(`no agent ${agent}`);
  const bytes: string[] = [];
  let transcript = `${heard}\n${agent}`;
  for (let step = 1; step <= own[3]; step += 1) {
    const json = { model, messages: [{ role: "user", content: transcript }], stream: step % 3 === 0 };
    const answer = await run.send("/v1/chat/completions", { json, headers: { "x-fanout-epoch": epoch } });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    bytes.push(answer.text);
    const said = json.stream ? String(answer.text.length) : completion.parse(answer.json).choices[0]?.message.content;
    transcript = `${transcript}\n${step}: ${said}`;
    const opened = AGENTS.filter(([, parent, at]) => parent === agent && at === step);
    const heardHere = transcript;
    const below = await Promise.all(opened.map(([id]) => play(run, epoch, id, heardHere, model)));
    for (const texts of below) bytes.push(...texts);
    transcript = `${transcript}${below.map((texts) => texts.at(-1)?.length).join()}`;
  }
  return bytes;
}

const playAll = (run: RunAccess, epoch: string, model?: string): Promise<string[][]> =>
  Promise.all(Array.from({ length: PROGRAMS }, (_, at) => play(run, epoch, "a0", `question ${at}`, model)));

it(
  "gets the same bytes again at width 64, in the same run and in a new one, without a call to an upstream",
  { tags: ["slow"] },
  async () => {
    const options = { replay: "run", default_model: "up-1", max_parallel: 64 };
    const first = await world.openRun(options);
    const recorded = await playAll(first, "recorded");
    expect(recorded.flat()).toHaveLength(PROGRAMS * CALLS);
    expect(world.upstream.counters.requests).toBe(PROGRAMS * CALLS);
    expect(await playAll(first, "again")).toEqual(recorded);
    const second = await world.openRun({ ...options, replay_from: first.id, budget: { calls: 0 } });
    expect(await playAll(second, "elsewhere")).toEqual(recorded);
    expect(world.upstream.counters.requests).toBe(PROGRAMS * CALLS);
  },
);

it(
  "gets the same bytes from a tape at width 64, at another gateway that has no upstream",
  { tags: ["slow"] },
  async () => {
    world.upstream.forget();
    const provider = { kind: "openai", prices: { "*": { input: 1, output: 2 } } };
    const inner = { ...provider, base_url: world.upstream.baseUrl };
    const nowhere = { ...provider, base_url: "http://127.0.0.1:9/v1", api_key: "secret:NOT_SET" };
    const recording = await startOwnGateway({
      vars: { UPSTREAMS: { up: { kind: "cassette", mode: "record", upstream: inner } } },
    });
    const replaying = await startOwnGateway({ vars: { UPSTREAMS: { up: { kind: "cassette", upstream: nowhere } } } });
    const open = async (gateway: Gateway): Promise<RunAccess> => {
      const { id, token } = await gateway.openRun({ max_parallel: 64, budget: { usd: 10 } });
      return { id, token, send: async (path, request) => answerOf(await gateway.fetch(path, { token, ...request })) };
    };
    const first = await open(recording);
    const recorded = await playAll(first, "recorded", "up/up-1");
    const spent = async (run: RunAccess): Promise<number> => (await documentOf(run)).budget.usd.spent;
    // A call is settled once its answer is on the tape.
    await expect.poll(async () => (await documentOf(first)).budget.usd.reserved).toBe(0);
    const tape = await recording.fetch("/cassettes/up/exchanges", { token: recording.adminKey });
    const body = await tape.text();
    expect(body.trimEnd().split("\n")).toHaveLength(PROGRAMS * CALLS);
    const loaded = await replaying.fetch("/cassettes/up", { method: "PUT", body, token: replaying.adminKey });
    expect(loaded.status).toBe(200);
    const second = await open(replaying);
    expect(await playAll(second, "again", "up/up-1")).toEqual(recorded);
    await expect.poll(() => spent(second)).toBeCloseTo(await spent(first), 9);
    expect(world.upstream.counters.requests).toBe(PROGRAMS * CALLS);
  },
);

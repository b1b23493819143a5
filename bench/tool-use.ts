/**
 * Models that use tools: one batch of the gateway against the same loop, written by hand with OpenAI's SDK, at the same width, model and
 * tools. Each slot has five turns, with two calls of tools in each but the last. `npm run bench:tool-use -- --slots 200 --width 32 --rounds 3`.
 */
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { z } from "zod";
import { startByteUpstream } from "../test/support/byte-upstream.ts";
import { startGateway } from "../test/support/gateway.ts";
import { answerAsModel } from "../test/support/tool-model.ts";
import { startToolServer } from "../test/support/tool-server.ts";

const options = {
  slots: { type: "string", default: "200" },
  width: { type: "string", default: "32" },
  rounds: { type: "string", default: "3" },
  "delay-ms": { type: "string", default: "250" },
} as const;
const { values } = parseArgs({ options });
const [slots, width, rounds, delayMs] = [values.slots, values.width, values.rounds, values["delay-ms"]].map(Number) as [
  number,
  number,
  number,
  number,
];

/** Eight words: four turns that ask for two of them, and one that answers. */
const wordsOf = (slot: number): string[] => Array.from({ length: 8 }, (_, at) => `${slot}${"x".repeat(at)}`);
const prompts = Array.from({ length: slots }, (_, slot) => `How long are ${wordsOf(slot).join(", ")}?`);
const expected = prompts.map((_, slot) => `${wordsOf(slot).join("").length} letters`);

const PARAMETERS = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
const [upstream, tools] = await Promise.all([startByteUpstream(), startToolServer()]);
upstream.serve(async (call, reply) => {
  await wait(delayMs);
  answerAsModel(call, reply);
});
const prices = { "*": { input: 1, output: 1 } };
const UPSTREAMS = { up: { kind: "openai", base_url: `${upstream.origin}/v1`, api_key: "secret:KEY", prices } };
const gateway = await startGateway({ vars: { UPSTREAMS, KEY: "sk-bench-5f0c9d1e7ab24c60", TOOL_HOSTS: tools.host } });
const url = `http://${tools.host}/length`;

/** One batch of the gateway. */
async function throughGateway(): Promise<string[]> {
  const length = { name: "length", url, parameters: PARAMETERS };
  const { token } = await gateway.openRun({ budget: { usd: 100 }, max_parallel: width, tools: [length] });
  const json = { prompts, model: "up/m", tools: ["length"], max_tokens: 100 };
  const answer = await gateway.fetch("/batch", { token, json });
  return z.object({ results: z.array(z.string()) }).parse(await answer.json()).results;
}

const called = z.object({ result: z.unknown() });
const client = new OpenAI({ baseURL: `${upstream.origin}/v1`, apiKey: "sk-bench", maxRetries: 0 });

/** The loop of one slot, as a program in the field writes it. */
async function byHand(prompt: string): Promise<string> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: prompt }];
  for (;;) {
    const answer = await client.chat.completions.create({
      model: "m",
      messages,
      max_tokens: 100,
      tools: [{ type: "function", function: { name: "length", parameters: PARAMETERS } }],
    });
    const message = answer.choices[0]?.message;
    if (message === undefined) throw new Error("an answer without a message");
    const calls = (message.tool_calls ?? []).filter((each) => each.type === "function");
    if (calls.length === 0) return message.content ?? "";
    messages.push(message);
    const results = await Promise.all(
      calls.map(async ({ id, function: { name, arguments: written } }) => {
        const body = JSON.stringify({ tool_name: name, input: JSON.parse(written) });
        const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
        return { id, content: String(called.parse(await response.json()).result) };
      }),
    );
    for (const { id, content } of results) messages.push({ role: "tool", tool_call_id: id, content });
  }
}

/** So many loops at a time as the gateway has calls in flight. */
async function allByHand(): Promise<string[]> {
  const answers: string[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let slot = next++; slot < slots; slot = next++) answers[slot] = await byHand(prompts[slot] ?? "");
  };
  await Promise.all(Array.from({ length: width }, work));
  return answers;
}

async function timed(make: () => Promise<string[]>): Promise<number> {
  const startedMs = performance.now();
  const answers = await make();
  const elapsedMs = performance.now() - startedMs;
  const wrong = answers.filter((answer, slot) => answer !== expected[slot]).length;
  if (wrong > 0 || answers.length !== slots) throw new Error(`${wrong} of ${answers.length} answers are wrong`);
  return elapsedMs;
}

const ratios: number[] = [];
try {
  for (let round = 0; round < rounds; round++) {
    // One after the other in each round, so that both meet the same machine.
    const hand = await timed(allByHand);
    const own = await timed(throughGateway);
    ratios.push(own / hand);
    console.log(
      `round ${round + 1}: by hand ${Math.round(hand)} ms, through the gateway ${Math.round(own)} ms, ratio ${(own / hand).toFixed(3)}`,
    );
  }
  const median = ratios.toSorted((a, b) => a - b)[Math.floor(ratios.length / 2)] ?? 0;
  console.log(
    `${slots} slots × 5 turns × 2 tools at width ${width}, model ${delayMs} ms: median ratio ${median.toFixed(3)}`,
  );
} finally {
  await gateway.stop();
  await Promise.all([upstream.stop(), tools.stop()]);
}

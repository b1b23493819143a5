/** The whole message of an answer: on every way in it is the one that `/v1` returns, and it goes back as one of `messages`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { ARGUMENTS, LOGPROBS } from "../support/speakers.ts";
import {
  batchOfOne,
  expectSame,
  forEachSpeaker,
  startSpeakers,
  viaV1,
  WAYS,
  withMessage,
  type Message,
  type SpeakingWorld,
} from "./message-world.ts";
import { answerOf, errorOf } from "./world.ts";

let world: SpeakingWorld;
beforeAll(async () => void (world = await startSpeakers()));
afterAll(() => world.stop());

/** The last request that a provider got. */
const sentTo = (name: string): string =>
  world.upstream.calls
    .filter(({ path }) => path.split("/")[1] === name)
    .at(-1)
    ?.body.toString() ?? "";

describe("the message of each provider", () => {
  it.each(Object.keys(WAYS))("is whole on %s, whether its provider streams it or not", async (way) => {
    const run = await world.openRun();
    await forEachSpeaker(async (speaker) => {
      const expected = await viaV1(run, speaker);
      for (const form of ["json", "stream"] as const) {
        const messages = (await WAYS[way]?.(run, `${speaker.name}-${form}/m`)) ?? [];
        expect(messages.length).toBeGreaterThan(0);
        for (const found of messages) expectSame(speaker, found, expected, form);
      }
    });
  });

  it("is written as its provider wrote it, down to the digits of its numbers", async () => {
    const run = await world.openRun();
    await forEachSpeaker(async ({ name, kind, message: written }) => {
      const model = `${name}-json/m`;
      const answers = [await run.send("/query", { json: { prompt: "hi", model } }), await batchOfOne(run, model)];
      for (const { text } of answers) {
        if (kind === "openai") expect(text).toContain(`"message":${written}`);
        else if (written.includes("lookup")) expect(text).toContain(JSON.stringify(ARGUMENTS));
        else expect(text).toContain(`"content_blocks":${written}`);
      }
    });
  });
});

describe("a message that is sent back", () => {
  const calls = z.array(z.looseObject({ id: z.string() })).default([]);
  const back = (found: Message) => {
    const results = calls.parse(found["tool_calls"] ?? []).map(({ id }) => ({
      role: "tool",
      tool_call_id: id,
      content: "[1, 2]",
    }));
    return [{ role: "user", content: "hi" }, found, ...results, { role: "user", content: "go on" }];
  };
  it("with results of its tools is taken under a limit at the upstream that wrote it, whole", async () => {
    const run = await world.openRun();
    await forEachSpeaker(async ({ name, kind, message: written }) => {
      // What its provider has searched for itself is not bounded by what is sent.
      if (name === "claude-search") return;
      const model = `${name}-json/m`;
      const { json } = await run.send("/query", { json: { prompt: "hi", model } });
      const found = withMessage.parse(json).message;
      const answer = await run.send("/query", { json: { messages: back(found), model, max_tokens: 100 } });
      expect(answer).toMatchObject({ status: 200 });
      const sent = z.looseObject({ messages: z.array(z.looseObject({})) }).parse(JSON.parse(sentTo(name)));
      if (kind === "openai") expect(sent.messages).toEqual(back(found));
      else expect(sentTo(name)).toContain(`{"role":"assistant","content":${written}}`);
    });
  });

  it("without a limit has the searches of its provider too; under one they are named", async () => {
    const [limited, free] = [await world.openRun(), await world.gateway().openRun()];
    const model = "claude-search-json/m";
    const { json } = await limited.send("/query", { json: { prompt: "hi", model } });
    const messages = back(withMessage.parse(json).message);
    const error = errorOf(await limited.send("/query", { json: { messages, model } }));
    expect(error.param).toMatch(/^messages\[1\]\.content_blocks\[0\]/);
    const request = { token: free.token, json: { messages, model } };
    expect(await answerOf(await world.gateway().fetch("/query", request))).toMatchObject({ status: 200 });
  });

  it("may come with the tools in the chat form, at both kinds", async () => {
    const run = await world.openRun();
    const parameters = { type: "object", properties: { zip: { type: "string" } } };
    const tools = [{ type: "function", function: { name: "lookup", description: "d", parameters } }];
    const params = { tools, tool_choice: "required" };
    for (const name of ["openai", "claude"]) {
      const answer = await run.send("/query", { json: { prompt: "hi", model: `${name}-json/m`, params } });
      expect(answer).toMatchObject({ status: 200, json: { finish_reason: "tool_calls", text: expect.any(String) } });
    }
    expect(JSON.parse(sentTo("openai"))).toMatchObject(params);
    expect(JSON.parse(sentTo("claude"))).toMatchObject({
      tools: [{ name: "lookup", description: "d", input_schema: parameters }],
      tool_choice: { type: "any" },
    });
  });
});

describe("include", () => {
  it("shows the message of a plain answer too: as a default, for one item, for a task", async () => {
    const run = await world.openRun();
    const model = "sim/echo";
    const plain = { role: "assistant", content: "hi" };
    const items = [{ prompt: "hi" }, { prompt: "hi", include: [] }];
    const { json: mixed } = await run.send("/batch", { json: { items, model, include: ["message"] } });
    expect(mixed).toMatchObject({ results: ["hi", "hi"], items: [{ message: plain }, { index: 1 }] });
    expect(z.looseObject({ items: z.array(z.looseObject({})) }).parse(mixed).items[1]).not.toHaveProperty("message");
    const tasks = [{ id: "a", prompt: "hi", model }];
    const { json: graph } = await run.send("/dag", { json: { tasks, options: { include: ["message"] } } });
    expect(graph).toMatchObject({ tasks: { a: { output: "hi", message: plain } }, outputs: { a: "hi" } });
    const none = await run.send("/query", { json: { prompt: "hi", model } });
    expect(none.json).not.toHaveProperty("message");
  });

  it("refuses an unknown member with the list", async () => {
    const run = await world.openRun();
    const error = errorOf(await run.send("/query", { json: { prompt: "hi", include: ["messages"] } }));
    expect(error).toMatchObject({ code: "invalid_request", param: "include[0]" });
    expect(error.message).toMatch(/message.*logprobs/);
  });

  it("shows log probabilities where they are asked for, as the provider wrote them", async () => {
    const run = await world.openRun();
    const ask = async (include: string[]) => {
      const { text, json } = await run.send("/query", { json: { prompt: "hi", model: "scored-json/m", include } });
      return { text, json };
    };
    expect((await ask([])).json).not.toHaveProperty("logprobs");
    expect((await ask(["logprobs"])).text).toContain(`"logprobs":${LOGPROBS}`);
    expect(JSON.parse(sentTo("scored"))).not.toHaveProperty("include");
  });
});

/** `OTLP_CONTENT`: what is asked and answered is in the exported traces, if and only if the operator wants it there. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { attributeOf, startCollector, type Collector, type OtlpSpan } from "../support/collector.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { OTLP_MODULE, readSpans } from "../support/otlp-parser.ts";
import { missingPackage } from "../support/python-packages.ts";
import { documentOf, startWorld, type RunAccess } from "./world.ts";

const missing = missingPackage(OTLP_MODULE);
reportLeftOut("the check of exported prompts by OpenTelemetry's reader", missing);

/** Long, for a machine that is busy: an export is due after five seconds. */
const EXPORTED_MS = 60_000;
const SAYS_NO = "{{status/400}} refused question";

/** A run that has asked in every way, and the collector with its spans. */
async function asked(
  vars: Record<string, unknown>,
): Promise<{ run: RunAccess; collector: Collector; streamed: string }> {
  const collector = await startCollector();
  onTestFinished(() => collector.stop());
  const world = await startWorld(undefined, { OTLP_ENDPOINT: collector.url, ...vars });
  onTestFinished(() => world.stop());
  const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
  await run.send("/query", { json: { prompt: "single question", system: "be brief" } });
  await run.send("/batch", { json: { prompts: ["batch question", SAYS_NO] } });
  const ask = (content: string, stream: boolean) => ({ stream, messages: [{ role: "user", content }] });
  await run.send("/v1/chat/completions", { json: { model: "up-1", ...ask("relayed question", false) } });
  const { text: streamed } = await run.send("/v1/chat/completions", {
    json: { model: "sim/echo", ...ask("streamed question", true) },
  });
  await run.send(`/runs/${run.id}/close`, { method: "POST" });
  await vi.waitFor(() => expect(attemptsOf(collector)).toHaveLength(5), { timeout: EXPORTED_MS, interval: 100 });
  return { run, collector, streamed };
}

const attemptsOf = (collector: Collector) => collector.spans().filter(({ name }) => name.startsWith("chat "));
const CONTENT = ["gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"] as const;

/** An attempt's prompt and answer; undefined = it has none. */
function contentOf(span: OtlpSpan): unknown[] {
  return CONTENT.map((key) => {
    const json = attributeOf(span, key);
    return typeof json === "string" ? JSON.parse(json) : json;
  });
}

const text = (content: string) => ({ type: "text", content });
const user = (content: string) => [{ role: "user", parts: [text(content)] }];
const assistant = (content: string) => [{ role: "assistant", parts: [text(content)], finish_reason: "stop" }];

describe("OTLP_CONTENT", () => {
  it.skipIf(missing !== null)(
    "adds what was asked and answered to every attempt, and changes nothing else",
    async () => {
      const { run, collector, streamed } = await asked({ OTLP_CONTENT: "1" });
      const contents = attemptsOf(collector).map(contentOf);
      const both = (question: string) => [undefined, user(question), assistant(question)];
      expect(contents).toHaveLength(5);
      expect(contents).toEqual(
        expect.arrayContaining([
          [[text("be brief")], user("single question"), assistant("single question")],
          both("batch question"),
          [undefined, user(SAYS_NO), undefined],
          both("relayed question"),
          both("streamed question"),
        ]),
      );
      expect(streamed).toContain("data: [DONE]");
      const { prompt_tokens } = (await documentOf(run)).budget;
      const read = readSpans(collector.posts.map(({ body }) => body));
      expect(read.reduce((sum, { tokens }) => sum + tokens[0], 0)).toBe(prompt_tokens.spent);
      // The log shows nothing of it.
      expect((await run.send(`/runs/${run.id}/log`)).text).not.toContain("question");
    },
  );

  it(
    "has the calls of tools that an answer asks for, native and relayed, whole and streamed",
    { tags: ["slow"] },
    async () => {
      const collector = await startCollector();
      onTestFinished(() => collector.stop());
      const world = await startWorld(undefined, { OTLP_ENDPOINT: collector.url, OTLP_CONTENT: "1" });
      onTestFinished(() => world.stop());
      const run = await world.openRun();
      const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
      const tools = [{ type: "function", function: { name: "double", parameters } }];
      const params = { tools, tool_choice: "required" };
      await run.send("/query", { json: { prompt: "hi", model: "sim/echo", params } });
      for (const stream of [false, true]) {
        const json = { model: "sim/echo", stream, messages: [{ role: "user", content: "hi" }], ...params };
        await run.send("/v1/chat/completions", { json });
      }
      await run.send(`/runs/${run.id}/close`, { method: "POST" });
      await vi.waitFor(() => expect(attemptsOf(collector)).toHaveLength(3), { timeout: EXPORTED_MS, interval: 100 });
      const call = { type: "tool_call", name: "double", arguments: expect.stringContaining('"n"') };
      const said = [{ role: "assistant", parts: [call], finish_reason: "tool_calls" }];
      expect(attemptsOf(collector).map((span) => contentOf(span)[2])).toEqual([said, said, said]);
    },
  );

  it.each([{}, { OTLP_CONTENT: "0" }])(
    "is off with %j: neither prompts nor answers are sent",
    { tags: ["slow"] },
    async (vars) => {
      const { collector } = await asked(vars);
      expect(attemptsOf(collector).map(contentOf).flat()).toEqual(Array.from({ length: 15 }, () => undefined));
      expect(collector.posts.map(({ body }) => body).join("\n")).not.toMatch(/question|brief/);
    },
  );
});

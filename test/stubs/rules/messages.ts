/** Whole messages, and tools: definitions, whose calls the program makes, and names of tools of the run, which the gateway calls. */
import { expect, it } from "vitest";
import { z } from "zod";
import { text, texts, type Script } from "../script.ts";

const parameters = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const tools = [{ type: "function", function: { name: "double", parameters } }];
const params = { tools, tool_choice: "required" };
const MODEL = "sim/echo";
const called = z.looseObject({
  messages: z.tuple([z.unknown(), z.looseObject({ tool_calls: z.unknown() })]).rest(z.unknown()),
});

export function messages(script: Script): void {
  it("returns the whole message of an answer, which goes back with the results of its tools", async () => {
    const proxy = await script.proxyTo([]);
    const prompt = "Double 漢字";
    expect(await script.drive(["message", MODEL, prompt], { FANOUT_URL: proxy.url })).toEqual([
      text("double\u001fdone"),
    ]);
    const [first, second] = proxy.requests.map(({ body }) => JSON.parse(body) as unknown);
    expect(first).toEqual({ prompt, model: MODEL, include: ["message"], params });
    expect(second).toMatchObject({ model: MODEL, include: ["message"] });
    const call = {
      id: expect.any(String),
      type: "function",
      function: { name: "double", arguments: expect.any(String) },
    };
    const [asked, message, result, done] = called.parse(second).messages;
    expect(asked).toEqual({ role: "user", content: prompt });
    expect(message).toMatchObject({ role: "assistant", tool_calls: [call] });
    const [{ id }] = z.tuple([z.looseObject({ id: z.string() })]).parse(message.tool_calls);
    expect([result, done]).toEqual([
      { role: "tool", tool_call_id: id, content: "8" },
      { role: "user", content: "done" },
    ]);
  });

  it("returns the messages of a batch whose model is offered tools", async () => {
    const proxy = await script.proxyTo([]);
    const prompts = ["Double 4", "Double 5"];
    const names = texts(await script.drive(["messages", MODEL, ...prompts], { FANOUT_URL: proxy.url }));
    expect(names).toEqual(["double", "double"]);
    const [sent] = proxy.requests.map(({ body }) => JSON.parse(body) as unknown);
    expect(sent).toEqual({ prompts, model: MODEL, include: ["message"], params });
  });

  it("lets the gateway call tools of the run, which go by their names", async () => {
    const proxy = await script.proxyTo([]);
    const word = { type: "object", properties: { word: { enum: ["prism"] } }, required: ["word"] };
    const url = `http://${script.tools.host}/length`;
    const run = await script.world.openRun({ tools: [{ name: "length", url, parameters: word }] });
    const env = { FANOUT_URL: proxy.url, FANOUT_TOKEN: run.token };
    const [answer] = texts(await script.drive(["agent", "sim/echo?calls=1", "length", "How long is it?"], env));
    expect(answer).toBe("5");
    expect(proxy.requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      { prompt: "How long is it?", model: "sim/echo?calls=1", include: ["message"], tools: ["length"], max_turns: 4 },
    ]);
  });
}

/** What it answers: every character, in order, each failure in its own place. */
import { expect, it } from "vitest";
import { text, texts, type Script } from "../script.ts";

export function answers(script: Script): void {
  it("answers a prompt, every character of it", async () => {
    const prompt = `naïve 漢字 🦉 e\u0301 "quoted" 'too' \\n \\u0041 $HOME %s {0} \`x\`\nsecond line\ttab \u2028 \u0001 \u007f end`;
    expect(await script.ask(["query", prompt])).toEqual([text(prompt)]);
    expect(await script.ask(["batch", prompt, prompt])).toEqual([text(prompt), text(prompt)]);
  });

  it("answers a long prompt, and one that looks like an option or like JSON", async () => {
    const prompts = ["x".repeat(12_000), "-n", "--help", "@/etc/passwd", '{"prompt":"p"}', "null", "  spaces  "];
    expect(texts(await script.ask(["batch", ...prompts]))).toEqual(prompts);
  });

  it("keeps the order of the prompts, whatever ends first", async () => {
    const prompts = Array.from({ length: 40 }, (_, index) => `${index} {{delay/${(index * 37) % 200}}}`);
    expect(texts(await script.ask(["batch", ...prompts]))).toEqual(prompts);
  });

  it("has a failure in its own place, and the others unharmed", async () => {
    const [first, failed, last, ...more] = texts(await script.ask(["batch", "one", "{{status/400}}", "three"]));
    expect([first, last, more]).toEqual(["one", "three", []]);
    expect(failed).toMatch(/^\[error\] ./);
  });

  it("asks nothing for an empty list", async () => {
    const proxy = await script.proxyTo([]);
    expect(await script.ask(["batch"], { FANOUT_URL: proxy.url })).toEqual([]);
    expect(proxy.requests).toEqual([]);
  });

  it("asks the model that it is told", async () => {
    const proxy = await script.proxyTo([]);
    const env = { FANOUT_URL: `${proxy.url}/` };
    expect(await script.ask(["query", "p", "up/up-2"], env)).toEqual([text("p")]);
    expect(await script.ask(["batch-model", "up/up-3", "p", "q"], env)).toEqual([text("p"), text("q")]);
    const asked = proxy.requests.map(({ path, body }) => ({ path, body: JSON.parse(body) as unknown }));
    expect(asked).toEqual([
      { path: "/query", body: { prompt: "p", model: "up/up-2" } },
      { path: "/batch", body: { prompts: ["p", "q"], model: "up/up-3" } },
    ]);
  });
}

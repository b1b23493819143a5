/** Results: every character, in order, each failure in its own slot. */
import { expect, it } from "vitest";
import { text, texts, type Script } from "../script.ts";

export function answers(script: Script): void {
  it("returns every character of an answer", async () => {
    const prompt = `naïve 漢字 🦉 e\u0301 "quoted" 'too' \\n \\u0041 $HOME %s {0} \`x\`\nsecond line\ttab \u2028 \u0001 \u007f end`;
    expect(await script.drive(["query", prompt])).toEqual([text(prompt)]);
    expect(await script.drive(["batch", prompt, prompt])).toEqual([text(prompt), text(prompt)]);
  });

  it("sends long prompts, and prompts that look like options or JSON", async () => {
    const prompts = ["x".repeat(12_000), "-n", "--help", "@/etc/passwd", '{"prompt":"p"}', "null", "  spaces  "];
    expect(texts(await script.drive(["batch", ...prompts]))).toEqual(prompts);
  });

  it("returns results in the order of the prompts, whichever ends first", async () => {
    const prompts = Array.from({ length: 40 }, (_, index) => `${index} {{delay/${(index * 37) % 200}}}`);
    expect(texts(await script.drive(["batch", ...prompts]))).toEqual(prompts);
  });

  it("returns a failure in its own slot, without effect on the other slots", async () => {
    const [first, failed, last, ...more] = texts(await script.drive(["batch", "one", "{{status/400}}", "three"]));
    expect([first, last, more]).toEqual(["one", "three", []]);
    expect(failed).toMatch(/^\[error\] ./);
  });

  it("sends no request for an empty list", async () => {
    const proxy = await script.proxyTo([]);
    expect(await script.drive(["batch"], { FANOUT_URL: proxy.url })).toEqual([]);
    expect(proxy.requests).toEqual([]);
  });

  it("sends the model in second place", async () => {
    const proxy = await script.proxyTo([]);
    const env = { FANOUT_URL: `${proxy.url}/` };
    expect(await script.drive(["query", "p", "up/up-2"], env)).toEqual([text("p")]);
    expect(await script.drive(["batch-model", "up/up-3", "p", "q"], env)).toEqual([text("p"), text("q")]);
    const records = proxy.requests.map(({ path, body }) => ({ path, body: JSON.parse(body) as unknown }));
    expect(records).toEqual([
      { path: "/query", body: { prompt: "p", model: "up/up-2" } },
      { path: "/batch", body: { prompts: ["p", "q"], model: "up/up-3" } },
    ]);
  });
}

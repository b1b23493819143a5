/** The run that the token belongs to: its budget, usage, log and tools. */
import { expect, it } from "vitest";
import { text, texts, type Script } from "../script.ts";

export function ownRun(script: Script): void {
  it("returns the remaining budget and the usage", async () => {
    await script.drive(["batch", "a", "b"]);
    const [left] = texts(await script.drive(["budget"]));
    const spent = 2 * (1 + 2) * 1e-6;
    expect(Number(left)).toBeGreaterThan(0.9);
    expect(Number(left)).toBeLessThan(1 - spent / 10);
    expect(await script.drive(["usage"])).toEqual([text("2")]);
  });

  it("writes its result and its events to the run's log", async () => {
    expect(await script.drive(["final", "the 漢字 answer"])).toEqual([text("ok")]);
    expect(await script.drive(["log", "execution_result", "output", "42"])).toEqual([text("ok")]);
    const lines = (await script.run.send(`/runs/${script.run.id}/log`)).text.trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line) as unknown);
    expect(events).toContainEqual(
      expect.objectContaining({ event_type: "final_result", output: "the 漢字 answer", run_id: script.run.id }),
    );
    expect(events).toContainEqual(expect.objectContaining({ event_type: "execution_result", output: "42" }));
  });

  it("calls a tool of its run, reports a tool's failure, and does not repeat a lost call", async () => {
    const tooled = await script.world.openRun({
      tools: [
        { name: "words", url: `http://${script.tools.host}/text` },
        { name: "broken", url: `http://${script.tools.host}/500` },
      ],
    });
    const proxy = await script.proxyTo(["pass", "pass", "pass", "deafen"]);
    const call = (name: string) =>
      script.drive(["tool", name, "field", 'a "value"'], { FANOUT_URL: proxy.url, FANOUT_TOKEN: tooled.token });
    script.tools.forget();
    expect(await call("words")).toEqual([text('{"result":1}')]);
    expect(script.tools.requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual([
      { tool_name: "words", input: { field: 'a "value"' } },
    ]);
    const failed = { kind: "failure", code: "tool_error", retryable: false };
    expect(await call("broken")).toEqual([{ ...failed, status: 500 }]);
    expect(await call("unknown")).toEqual([{ ...failed, status: 404 }]);
    expect(await call("words")).toEqual([{ kind: "failure", code: "unreachable", status: null, retryable: true }]);
    expect([proxy.requests.length, script.tools.requests.length]).toEqual([4, 3]);
  });
}

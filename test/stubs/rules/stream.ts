/** What it gives while a batch runs: each slot as it ends, once. */
import { expect, it } from "vitest";
import { keysOf, sleep, text, texts, type Script } from "../script.ts";

export function stream(script: Script): void {
  it("gives each slot as it ends", async () => {
    script.hold();
    const asking = script.start(["stream", "wait for it", "at once"]);
    while (asking.records().length === 0) if (await Promise.race([asking.ended, sleep(10)])) break;
    expect(asking.records()).toEqual([text("1\u001fat once")]);
    script.release();
    expect(await asking.ended).toEqual([text("1\u001fat once"), text("0\u001fwait for it")]);
  });

  it("gives each slot once, also where the connection is cut, and asks nothing for an empty list", async () => {
    const prompts = Array.from({ length: 30 }, (_, index) => `slot ${index}`);
    const proxy = await script.proxyTo(["end", "cut"]);
    const slots = texts(await script.ask(["stream", ...prompts], { FANOUT_URL: proxy.url }));
    const expected = prompts.map((prompt, index) => `${index}\u001f${prompt}`);
    expect(slots.toSorted()).toEqual(expected.toSorted());
    expect([proxy.requests.length, new Set(keysOf(proxy)).size]).toEqual([3, 1]);
    expect(script.world.upstream.counters.requests).toBe(30);
    expect(await script.ask(["stream"], { FANOUT_URL: proxy.url })).toEqual([]);
    expect(proxy.requests).toHaveLength(3);
  });

  it("has a failed slot as its error text", async () => {
    const slots = texts(await script.ask(["stream", "fine", "{{status/400}}"])).toSorted();
    expect(slots).toEqual(["0\u001ffine", expect.stringMatching(/^1.\[error\] ./)]);
  });
}

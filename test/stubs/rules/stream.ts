/** Streams: each slot as it ends, once. */
import { expect, it } from "vitest";
import { keysOf, sleep, text, texts, type Script } from "../script.ts";

export function stream(script: Script): void {
  it("returns each slot as it ends", async () => {
    script.hold();
    const running = script.startDriver(["stream", "wait for it", "at once"]);
    while (running.records().length === 0) if (await Promise.race([running.ended, sleep(10)])) break;
    expect(running.records()).toEqual([text("1\u001fat once")]);
    script.release();
    expect(await running.ended).toEqual([text("1\u001fat once"), text("0\u001fwait for it")]);
  });

  it("returns each slot once, also if the connection is cut, and sends no request for an empty list", async () => {
    const prompts = Array.from({ length: 30 }, (_, index) => `slot ${index}`);
    const proxy = await script.proxyTo(["end", "cut"]);
    const slots = texts(await script.drive(["stream", ...prompts], { FANOUT_URL: proxy.url }));
    const expected = prompts.map((prompt, index) => `${index}\u001f${prompt}`);
    expect(slots.toSorted()).toEqual(expected.toSorted());
    expect([proxy.requests.length, new Set(keysOf(proxy)).size]).toEqual([3, 1]);
    expect(script.world.upstream.counters.requests).toBe(30);
    expect(await script.drive(["stream"], { FANOUT_URL: proxy.url })).toEqual([]);
    expect(proxy.requests).toHaveLength(3);
  });

  it("returns a failed slot with its error text", async () => {
    const slots = texts(await script.drive(["stream", "fine", "{{status/400}}"])).toSorted();
    expect(slots).toEqual(["0\u001ffine", expect.stringMatching(/^1.\[error\] ./)]);
  });
}

/** Epochs: each request names the life of its program, so that a run that records can replay the one before. */
import { expect, it } from "vitest";
import { text, type Script } from "../script.ts";

export function epochs(script: Script): void {
  it("names its program's life in each request, the same until it ends and another in the next", async () => {
    const lives: (string | string[] | undefined)[] = [];
    for (let life = 0; life < 2; life += 1) {
      const proxy = await script.proxyTo([]);
      expect(await script.drive(["nested", "p"], { FANOUT_URL: proxy.url })).toEqual(Array(4).fill(text("p")));
      const names = new Set(proxy.requests.map(({ headers }) => headers["x-fanout-epoch"]));
      expect(names.size).toBe(1);
      lives.push(...names);
    }
    expect(new Set(lives).size).toBe(2);
    for (const name of lives) expect(name).toMatch(/^[\x21-\x7e]{16,64}$/);
  });
}

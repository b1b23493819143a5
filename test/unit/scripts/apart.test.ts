import { describe, expect, it } from "vitest";
import { apart, unreachableApart } from "../../../scripts/local/apart.ts";

describe("a program in a process of its own", () => {
  it("fails with what it wrote of its fault", { tags: ["slow"] }, async () => {
    const request = { dataDir: "", envFiles: ["no-such-file.env"] };
    await expect(apart("configuration-program.ts", request)).rejects.toThrow(/^ENOENT.*no-such-file\.env/);
  });

  it("fails if it does not exist", async () => {
    await expect(apart("no-such-program.ts", {})).rejects.toThrow(/no-such-program\.ts/);
  });

  it("names the upstreams that cannot be reached", { tags: ["slow"] }, async () => {
    const UPSTREAMS = {
      up: { kind: "openai", base_url: "http://127.0.0.1:1/v1", prices: { "*": { input: 1, output: 1 } } },
    };
    expect(await unreachableApart({ vars: { ADMIN_KEY: "operator-key-of-these-tests-0123", UPSTREAMS } })).toEqual([
      "the upstream up cannot be reached at its base_url http://127.0.0.1:1/v1: nothing listens at its port",
    ]);
  });

  it("says so if it is not known whether they can", { tags: ["slow"] }, async () => {
    const [sentence, ...others] = await unreachableApart({ envFiles: ["no-such-file.env"] });
    expect([sentence, others]).toEqual([expect.stringContaining("is not known"), []]);
  });
});

import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { unreachableUpstreams } from "../../../scripts/reach-upstreams.ts";

const varsOf = (base_url: string) => ({ UPSTREAMS: JSON.stringify({ up: { kind: "openai", base_url } }) });

describe("upstreams that cannot be reached", () => {
  it("are named with the reason, and one that listens is not", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    expect(await unreachableUpstreams(varsOf(url))).toEqual([]);
    server.close();
    await once(server, "close");
    expect(await unreachableUpstreams(varsOf(url))).toEqual([
      `the upstream up cannot be reached at its base_url ${url}: nothing listens at its port`,
    ]);
  });

  it.each(["http://127.0.0.1:11434/v1", "http://10.1.2.3/v1", "http://localhost:8000/v1", "http://ollama/v1"])(
    "are out of a Worker's reach at %s, whoever listens there",
    async (url) => {
      expect(await unreachableUpstreams(varsOf(url), { isDeployed: true })).toEqual([
        `the upstream up is out of a Worker's reach: the host of its base_url ${url} is not on the public internet`,
      ]);
    },
  );

  it("are none where the configuration is wrong: the gateway says that", async () => {
    expect(await unreachableUpstreams({ UPSTREAMS: "{" })).toEqual([]);
  });
});

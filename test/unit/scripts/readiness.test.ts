import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { untilReady } from "../../../scripts/readiness.ts";
import type { ScriptedGateway, Seen } from "../../support/scripted-gateway.ts";
import { sendJson, startScriptedGateway } from "../../support/scripted-gateway.ts";

describe("untilReady", () => {
  let gateway: ScriptedGateway | null = null;
  afterEach(async () => {
    await gateway?.stop();
    gateway = null;
  });

  async function serve(answer: (request: Seen, reply: ServerResponse) => void): Promise<string> {
    gateway = await startScriptedGateway(answer);
    return gateway.url;
  }

  it("is ready once the operator's key opens a protected route", async () => {
    const url = await serve(({ headers }, reply) =>
      sendJson(reply, headers.authorization === "Bearer k" ? 200 : 401, {}),
    );
    expect(await untilReady(url, "k")).toEqual({ ready: true });
  });

  it("hands on what the gateway says of a wrong configuration", async () => {
    const message = `UPSTREAMS.sim.kind: expected "openai" or "simulated"`;
    const url = await serve(({ path }, reply) =>
      path === "/health"
        ? sendJson(reply, 200, {})
        : sendJson(reply, 500, { error: { message, code: "misconfigured" } }),
    );
    const readiness = await untilReady(url, "k");
    expect(readiness).toEqual({ ready: false, message: `The gateway is not usable: ${message}` });
  });

  it("gives up when nothing answers, and names the address", async () => {
    const url = await serve(() => {});
    await gateway?.stop();
    gateway = null;
    expect(await untilReady(url, "k", 100)).toEqual({ ready: false, message: `${url} does not respond` });
  });
});

/** `GET /upstreams` and `POST /upstreams/:name/resume`: the operator's view of the keys that all runs share. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resumedUpstream, upstreamList } from "../../src/contract/operator/upstreams.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { answerOf } from "./world.ts";

const UPSTREAMS = {
  first: { kind: "simulated" },
  second: { kind: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "sk-second-key", models: ["x"] },
  third: {
    kind: "openai",
    base_url: "http://127.0.0.1:9/v1",
    keys: ["secret:THIRD_A", "secret:THIRD_B"],
    models: ["y"],
  },
};

let gateway: Gateway;
beforeAll(
  async () =>
    void (gateway = await startGateway({
      vars: { UPSTREAMS, THIRD_A: "sk-third-a", THIRD_B: "sk-third-b", DEFAULT_MODEL: "first/echo" },
    })),
);
afterAll(() => gateway.stop());

const send = async (path: string, token: string, method = "GET") =>
  await answerOf(await gateway.fetch(path, { method, token }));

describe("GET /upstreams", () => {
  it("has one entry per key in the configured order: open, as long as no limit was met", async () => {
    const { status, json, text } = await send("/upstreams", gateway.adminKey);
    expect(status).toBe(200);
    expect(upstreamList.strict().parse(json).data).toMatchObject([
      { name: "first", key: null, class: "open", reason: null, waiting: 0, in_flight: 0, stopped: null },
      { name: "second", key: null, class: "open", reason: null, waiting: 0, in_flight: 0, stopped: null },
      { name: "third", key: "secret:THIRD_A", class: "open" },
      { name: "third", key: "secret:THIRD_B", class: "open" },
    ]);
    expect(text).not.toContain("sk-");
  });

  it("is the operator's", async () => {
    const run = await gateway.openRun();
    expect(await send("/upstreams", run.token)).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
    const resume = await send("/upstreams/first/resume", run.token, "POST");
    expect(resume).toMatchObject({ status: 403, json: { error: { code: "forbidden" } } });
  });
});

describe("POST /upstreams/:name/resume", () => {
  it("changes nothing of a key that is not stopped", async () => {
    const { status, json } = await send("/upstreams/first/resume", gateway.adminKey, "POST");
    expect(status).toBe(200);
    const resumed = resumedUpstream.strict().parse(json);
    expect(resumed).toMatchObject({ resumed: 0, data: [{ name: "first", class: "open" }] });
  });

  it("does not find an upstream that is not configured", async () => {
    const answer = await send("/upstreams/fourth/resume", gateway.adminKey, "POST");
    expect(answer).toMatchObject({ status: 404, json: { error: { code: "not_found" } } });
  });
});

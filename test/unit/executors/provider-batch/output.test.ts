/** The lines of a batch's files as outcomes. */
import { describe, expect, it } from "vitest";
import { outcomeOfLine, readLine } from "../../../../src/executors/provider-batch/output.ts";
import { makeUpstream } from "../../providers/make.ts";

const call = { upstream: makeUpstream(), model: "gpt-x" };

const outcomeOf = (line: object) => {
  const read = readLine(JSON.stringify({ custom_id: "65536.1", ...line }));
  return read === null ? expect.fail("no line") : outcomeOfLine(read, call, 0);
};

function answered(tier?: string) {
  const choices = [{ index: 0, message: { role: "assistant", content: "yes" }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 };
  const body = { model: "gpt-x-1", choices, usage, ...(tier === undefined ? {} : { service_tier: tier }) };
  return outcomeOf({ response: { status_code: 200, body }, error: null });
}

describe("a line of a batch's file", () => {
  it.each(["{", "[]", '"text"', "{}", '{"custom_id":7}'])("is none if it is %s", (text) => {
    expect(readLine(text)).toBeNull();
  });

  it.each([undefined, "default", "standard"])("is billed at the batch if its answer names the tier %s", (tier) => {
    expect(answered(tier)).toMatchObject({ kind: "success", text: "yes", usage: { serviceTier: "batch" } });
  });

  it("is billed at the tier that its answer names, if that is another", () => {
    expect(answered("priority")).toMatchObject({ usage: { serviceTier: "priority" } });
  });

  it("of a client's own body is the whole answer, with what it cost at the price of batches", () => {
    const rates = (pico: number) => ({ inputPicoUsd: pico, cachedInputPicoUsd: pico, outputPicoUsd: pico });
    const price = { ...rates(2_000_000), serviceTiers: { batch: rates(1_000_000) } };
    const upstream = makeUpstream({ prices: [{ pattern: "*", price }] });
    const body = { object: "list", data: [{ embedding: [1] }], usage: { prompt_tokens: 6, total_tokens: 6 } };
    const line = readLine(JSON.stringify({ custom_id: "65536.1", response: { status_code: 200, body } }));
    if (line === null) return expect.fail("no line");
    const outcome = outcomeOfLine(line, { upstream, model: "embed-x", endpoint: "embeddings" }, 0);
    expect(outcome).toMatchObject({ kind: "success", usage: { promptTokens: 6, serviceTier: "batch" } });
    // Six tokens at a dollar per million.
    const whole = { ...body, usage: { ...body.usage, cost: 6e-6 } };
    expect(outcome.kind === "success" && JSON.parse(outcome.text)).toEqual(whole);
  });

  it("with the answer to a failed request is the failure that a live call would be", () => {
    const error = { message: "no such model", type: "invalid_request_error" };
    expect(outcomeOf({ response: { status_code: 400, body: { error } } })).toMatchObject({
      kind: "failure",
      class: "rejected",
      answered: true,
    });
    expect(outcomeOf({ response: { status_code: 500, body: { error } } })).toMatchObject({ class: "transient" });
  });

  it.each(["batch_expired", "batch_cancelled"])("with the error %s is free, and the call is sent live", (code) => {
    const outcome = outcomeOf({ response: null, error: { code, message: "not executed" } });
    expect(outcome).toMatchObject({ class: "rejected", refusesTier: true, answered: false });
  });

  it("with any other error may have been billed", () => {
    expect(outcomeOf({ response: null, error: { code: "server_error", message: "oh" } })).toMatchObject({
      class: "unknown",
      reason: { upstreamCode: "server_error", retryable: true },
    });
    expect(outcomeOf({})).toMatchObject({ class: "unknown" });
  });
});

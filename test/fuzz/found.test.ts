/**
 * Requests that the fuzzer has found, each under the name of its fault. Add one here for every fault: a later seed may not
 * come upon it again.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway, type Gateway, type OpenedRun } from "../support/gateway.ts";
import { faultsOf } from "./oracle.ts";
import type { HostileRequest } from "./request.ts";
import { exchange, type Answer } from "./wire.ts";

let gateway: Gateway;
let run: OpenedRun;
beforeAll(async () => {
  gateway = await startGateway();
  run = await gateway.openRun();
});
afterAll(() => gateway.stop());

const PATIENCE = { answerMs: 60_000, waitMs: 60_000 };
const CHUNKED = ["content-type: application/json", "transfer-encoding: chunked"];

/** Sends a request with the run's token, and expects its answer to have no fault. */
async function answerTo(line: string, headers: readonly string[] = [], body = ""): Promise<Answer> {
  const [method = "", target = ""] = line.split(" ");
  const all = ["host: gateway.test", `authorization: Bearer ${run.token}`, "connection: close", ...headers];
  const request: HostileRequest = {
    ...{ index: 0, operation: line, method, target, sender: "run", ending: "waits", frames: null, needs: "run" },
    bytes: Buffer.from(`${line} HTTP/1.1\r\n${all.join("\r\n")}\r\n\r\n${body}`, "latin1"),
    ...{ isHttp: true, mayWait: false },
  };
  const found = await exchange(gateway.url, request, PATIENCE);
  expect(faultsOf(request, found, [{ what: "the token of its path", text: run.token }])).toEqual([]);
  if (found.kind !== "answer") throw new Error(`the connection was ${found.kind}`);
  return found.answer;
}

const errorIn = ({ body }: Answer): unknown => JSON.parse(body.toString());

describe("a body whose chunks are damaged is a refusal, not an internal error", () => {
  it.each(["/query", "/batch", "/log", "/v1/chat/completions", "/dag"])("on %s", async (path) => {
    const answer = await answerTo(`POST ${path}`, CHUNKED, 'zz\r\n{"prompt":"a"}\r\n0\r\n\r\n');
    expect(answer.status).toBe(400);
    expect(errorIn(answer)).toMatchObject({
      error: { code: "invalid_request", message: expect.stringContaining("the body cannot be read to its end") },
    });
  });

  it("on a route that reads none", async () => {
    const answer = await answerTo(`POST /runs/${run.id}/flush`, CHUNKED, "-1\r\nx");
    expect([answer.status, errorIn(answer)]).toMatchObject([400, { error: { code: "invalid_request" } }]);
  });

  it("on a dialect's route", async () => {
    const answer = await answerTo("POST /llm_query", CHUNKED, '5;ext=\0\r\n{"prompt":1}');
    expect([answer.status, errorIn(answer)]).toEqual([
      400,
      { error: expect.stringContaining("the body cannot be read") },
    ]);
  });
});

describe("a token in a path that no route has", () => {
  it.each(["//rollout//TOKEN//llm_query", "/ui/../rollout/TOKEN/llm_query", "/v1/TOKEN", "/r%6fllout/TOKEN"])(
    "is not repeated by the refusal of %s",
    async (path) => {
      const answer = await answerTo(`POST ${path.replace("TOKEN", run.token)}`);
      expect([answer.status, answer.body.toString()]).toEqual([404, expect.stringContaining(":id")]);
    },
  );
});

describe("a refusal below /v1/messages has Anthropic's form", () => {
  it.each([
    ["DELETE /v1/messages/drafts", 404, "not_found_error"],
    ["DELETE /v1/messages/batches", 405, "invalid_request_error"],
    ["GET /v1/messages", 405, "invalid_request_error"],
  ])("%s", async (line, status, type) => {
    const answer = await answerTo(line);
    expect([answer.status, errorIn(answer)]).toMatchObject([status, { type: "error", error: { type } }]);
  });
});

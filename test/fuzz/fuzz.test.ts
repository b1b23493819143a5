/** The short form of `npm run fuzz`, and whether its oracle sees what it is there for. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { authorityFault, needsOf } from "./authority.ts";
import { campaign } from "./campaign.ts";
import { surfaceOf } from "./document.ts";
import { faultsOf } from "./oracle.ts";
import type { Names, Party } from "./names.ts";
import { drawRequest, type HostileRequest } from "./request.ts";
import { answerIn, type Exchange } from "./wire.ts";

const REQUESTS = 2_000;

describe("2,000 hostile requests", () => {
  it("end in no fault of the gateway", async () => {
    const indexes = Array.from({ length: REQUESTS }, (_, index) => index);
    const outcome = await campaign({ seed: 18, indexes, abreast: 8 });
    expect(outcome.violations).toEqual([]);
    // A gateway that refuses everything would hold every promise.
    expect(outcome.statuses["200"]).toBeGreaterThan(REQUESTS / 10);
  }, 600_000);
});

const party = (id: string): Party => ({
  id,
  token: `fo-run-eyJhIjoxfQ.eyJhIjoxfQ.${id}`,
  things: { group: `${id}-g`, dag: `${id}-d`, context: `${id}-c`, child: `${id}-r`, files: null },
});
const names: Names = { own: party("own"), other: party("other"), workerToken: "fo-pull-a.b.c", adminKey: "admin" };
const surface = surfaceOf({
  paths: {
    "/groups/{id}": { get: { parameters: [{ name: "id", in: "path" }] } },
    "/query": {
      post: { requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Query" } } } } },
    },
  },
  components: { schemas: { Query: { type: "object", properties: { prompt: { type: "string" } } } } },
});
const drawn = (seed: number, from = 0): HostileRequest[] =>
  Array.from({ length: 200 }, (_, at) => drawRequest(surface, names, { seed, index: from + at }));

/** Bodies are large: their digests are compared. */
const digests = (requests: readonly HostileRequest[]): unknown[] =>
  requests.map(({ bytes, ...rest }) => ({
    ...rest,
    frames: null,
    digest: createHash("sha256").update(bytes).digest("hex"),
  }));

describe("the requests of a seed", () => {
  it("are the same each time, and others than those of another seed", () => {
    const first = digests(drawn(7));
    expect(digests(drawn(7))).toEqual(first);
    expect(digests(drawn(8))).not.toEqual(first);
  });

  it("do not depend on where a campaign begins", () => {
    expect(digests(drawn(7, 100).slice(0, 100))).toEqual(digests(drawn(7).slice(100, 200)));
  });

  it("never have the other run's token", () => {
    for (const { bytes } of drawn(7)) expect(Buffer.from(bytes).includes(names.other.token)).toBe(false);
  });
});

const honest: HostileRequest = {
  ...{ index: 0, operation: "POST /query", method: "POST", target: "/query", sender: "run", ending: "waits" },
  ...{ bytes: Buffer.from("POST /query"), needs: "run", frames: null, isHttp: true, mayWait: false },
};
const error = { message: "no", type: "server_error", code: "internal", param: null, retryable: false };
const answered = (status: number, body: unknown, head = "x-request-id: a"): Exchange => {
  const answer = answerIn(Buffer.from(`HTTP/1.1 ${status} X\r\n${head}\r\n\r\n${JSON.stringify(body)}`), "POST");
  return answer === null ? { kind: "closed" } : { kind: "answer", answer };
};

describe("the oracle", () => {
  it.each<[string, Exchange, string]>([
    ["a secret in a body", answered(200, { text: "a sesame b" }), "shows the key"],
    ["a secret in a header", answered(200, {}, "x-request-id: sesame"), "shows the key"],
    ["a stack trace", answered(200, { text: "Error: x\n    at f (a.js:1:2)" }), "shows a stack trace"],
    ["a path", answered(200, { a: "/tmp/fanout-x/gateway.mjs" }), "shows the path of a file"],
    ["an internal error", answered(500, { error }), "is 500"],
    ["the code of one", answered(500, { error }), "shows an internal error"],
    ["a status of no failure of an upstream", answered(502, { error: { ...error, code: "x" } }), "is 502"],
    ["an error of another form", answered(400, { error: "no" }), "has no error's form at 400"],
    ["no request id", answered(200, {}, "x: y"), "has no x-request-id"],
    [
      "a wait of unknown length",
      answered(503, { error: { ...error, code: "overloaded" } }),
      "is 503 without retry-after",
    ],
    [
      "a header from the request",
      answered(200, {}, "x-request-id: a\r\nx-injected: 1"),
      "has a header of the request's",
    ],
    ["an upgrade", answered(101, {}), "upgrades a route that has no events"],
    ["no answer", { kind: "left" }, "has no answer: the connection was left"],
  ])("sees %s", (_, exchange, fault) => {
    expect(faultsOf(honest, exchange, [{ what: "the key", text: "sesame" }])).toContain(fault);
  });

  it("finds nothing in a good answer, in a refusal, and in an upstream's failure", () => {
    const secrets = [{ what: "the key", text: "sesame" }];
    const failed = { ...error, code: "upstream_error", type: "upstream_error" };
    for (const fine of [
      answered(200, { text: "b" }),
      answered(400, { error: { ...error, code: "invalid_request" } }),
    ]) {
      expect(faultsOf(honest, fine, secrets)).toEqual([]);
    }
    expect(faultsOf(honest, answered(502, { error: failed }), secrets)).toEqual([]);
  });
});

describe("the authority that a request needs", () => {
  const documented = surfaceOf({
    paths: Object.fromEntries(
      [
        ["/health", "get", []],
        ["/runs", "get", [{}]],
        ["/runs", "post", [{}]],
        ["/runs/{id}", "get", [{}]],
        ["/runs/{id}/claim", "post", [{}]],
        ["/upstreams/{name}/resume", "post", [{}]],
        ["/rollout/{id}/llm_query", "post", [{}]],
      ].reduce((paths, [path, method, security]) => {
        const before = paths.get(String(path)) ?? {};
        return paths.set(String(path), { ...before, [String(method)]: { security } });
      }, new Map<string, Record<string, unknown>>()),
    ),
    components: { schemas: {} },
  });

  it.each([
    ["GET", "/health", "nothing"],
    ["GET", "/runs?limit=1", "operator"],
    ["HEAD", "/run%73", "operator"],
    ["POST", "/runs", "run"],
    ["GET", "/runs/a", "run"],
    ["POST", "/runs/a/claim", "worker"],
    ["POST", "/upstreams/up/resume", "operator"],
    ["GET", "/ui/../runs", "operator"],
    ["GET", "/runs/%2e%2e", "nothing"],
    ["OPTIONS", "/runs", "nothing"],
  ])("of %s %s is that of %s", (method, target, needs) => {
    expect(needsOf(documented, { method, target })).toBe(needs);
  });

  it("is a fault of the answer where its sender does not have it", () => {
    const sent = { needs: "operator", sender: "run", target: "/runs" } as const;
    expect(authorityFault(sent, 200)).toBe("lets in the run where it needs operator");
    expect(authorityFault(sent, 403)).toBeNull();
    expect(authorityFault({ ...sent, sender: "operator" }, 200)).toBeNull();
    expect(authorityFault({ ...sent, needs: "worker", sender: "worker" }, 200)).toBeNull();
    expect(authorityFault({ ...sent, needs: "run", sender: "forged" }, 101)).toContain("lets in the forged");
    const inPath = { needs: "run", sender: "nobody", target: "/rollout/fo-run-a.b.c/llm_query" } as const;
    expect(authorityFault(inPath, 200)).toBeNull();
  });
});

describe("an answer", () => {
  const read = (text: string) => answerIn(Buffer.from(text), "GET");

  it("is read from its chunks, and says whether it is whole", () => {
    const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    expect(read(`${head}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`)).toMatchObject({
      body: Buffer.from("abcde"),
      isWhole: true,
    });
    expect(read(`${head}3\r\nabc\r\n2\r\nd`)).toMatchObject({ isWhole: false });
    expect(read("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab")).toMatchObject({ isWhole: false });
  });

  it("follows the interim one", () => {
    expect(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")).toMatchObject({ status: 204 });
    expect(read("HTTP/1.1 100 Continue\r\n\r\n")).toBeNull();
  });
});

/** The table of failures, by itself and through every way in which an upstream is called. */
import { describe, expect, it } from "vitest";
import type { Endpoint, Outcome } from "../../../src/call.ts";
import { attempt } from "../../../src/providers/attempt.ts";
import type { Upstream } from "../../../src/providers/config/types.ts";
import { CODE_RULES, OTHER, STATUS_RULES, treatmentOf } from "../../../src/providers/failure-table.ts";
import { makeAnthropic, makeDeps, makeLease, makeUpstream } from "./make.ts";
import { Attempt, failedOf, makeJob, requestOf } from "./relay/make.ts";

/** Every status that an answer can have and that is no success. */
const STATUSES = [0, ...Array.from({ length: 300 }, (_, at) => 300 + at)];

/** What reservation.md calls free: what any other status cost is in doubt, or documented as billed. */
const FREE = new Set([400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 429, 498, 500, 502, 503, 521, 525, 526, 529]);
/** What an upstream may bill that bills requests which it read and refused. */
const BILLABLE = [400, 403, 422];

describe("the table of statuses", () => {
  it("has one rule for each status, and a source for each rule", () => {
    const listed = STATUS_RULES.flatMap(({ statuses }) => statuses);
    expect(new Set(listed).size).toBe(listed.length);
    for (const { source } of [...STATUS_RULES, ...OTHER, ...CODE_RULES]) expect(source.length).toBeGreaterThan(20);
    for (const status of STATUSES) expect(() => treatmentOf(status, [], "free")).not.toThrow();
    const bounds = OTHER.flatMap(({ from, to }) => [from, to]);
    expect(bounds).toEqual([0, 399, 400, 499, 500, Infinity]);
  });

  it("calls nothing free that is not documented as unbilled", () => {
    const free = STATUSES.filter((status) => status >= 400 && treatmentOf(status, [], "free").class !== "unknown");
    expect(free).toEqual([...FREE]);
  });

  it.each([408, 504, 520, 522, 523, 524, 530])(
    "charges %i, where a proxy stopped waiting, and tries it again",
    (status) => {
      expect(treatmentOf(status, [], "free")).toEqual({ class: "unknown", retryable: true });
    },
  );

  it("tries nothing again that the request itself caused", () => {
    const again = STATUSES.filter((status) => status < 500 && treatmentOf(status, [], "free").retryable);
    expect(again).toEqual([408, 409, 429, 498]);
  });

  it("charges what was read and refused where the operator says that it is billed, and nothing else more", () => {
    const changed = STATUSES.filter(
      (status) => treatmentOf(status, [], "free").class !== treatmentOf(status, [], "reservation").class,
    );
    expect(changed).toEqual(BILLABLE);
    for (const status of BILLABLE) {
      expect(treatmentOf(status, [], "reservation")).toEqual({ class: "unknown", retryable: false });
    }
  });
});

describe("the table of codes", () => {
  const billed = CODE_RULES.filter((rule) => rule.billed).flatMap(({ codes }) => codes);

  it.each(billed)("%s is charged and final, whatever its status", (code) => {
    for (const status of STATUSES) {
      expect(treatmentOf(status, [code], "free")).toEqual({ class: "unknown", retryable: false });
    }
  });

  it("knows a code in every spelling, and among others", () => {
    for (const code of ["ContentFilter", "content-filter", "CONTENT_FILTER"]) {
      expect(treatmentOf(400, ["x", code], "free").class).toBe("unknown");
    }
    expect(treatmentOf(400, ["content_filters_off"], "free").class).toBe("rejected");
  });

  it("ends a call whose prompt does not fit at any status, free where the status is", () => {
    for (const status of [400, 429, 500]) {
      expect(treatmentOf(status, ["context_length_exceeded"], "free")).toEqual({ class: "rejected", retryable: false });
    }
    expect(treatmentOf(504, ["context_length_exceeded"], "free")).toEqual({ class: "unknown", retryable: false });
    expect(treatmentOf(400, ["context_length_exceeded"], "reservation").class).toBe("unknown");
  });
});

type Way = { name: string; send: (upstream: Partial<Upstream>, status: number, body: string) => Promise<Outcome> };

const BODIES: Readonly<Record<Endpoint, string>> = {
  chat: '{"model":"gpt-x","messages":[]}',
  completions: '{"model":"gpt-x","prompt":"a"}',
  embeddings: '{"model":"gpt-x","input":["a"]}',
  responses: '{"model":"gpt-x","input":"a"}',
  messages: '{"model":"gpt-x","max_tokens":5,"messages":[]}',
};
const ENDPOINTS = Object.keys(BODIES).filter((name): name is Endpoint => name in BODIES);

/** A status outside of what `Response` takes is given to a response that has another. */
function responseOf(status: number, body: string): Response {
  const response = new Response([204, 205, 304].includes(status) ? null : body, {
    status: status === 0 ? 200 : status,
  });
  return status === 0 ? Object.defineProperty(response, "status", { value: 0 }) : response;
}

const upstreamFor = (endpoint: Endpoint, fields: Partial<Upstream>): Upstream =>
  endpoint === "messages" ? makeAnthropic(fields) : makeUpstream(fields);

const native = (kind: "openai" | "anthropic"): Way => ({
  name: `/query and /batch at ${kind}`,
  send: (fields, status, text) => {
    const upstream = kind === "openai" ? makeUpstream(fields) : makeAnthropic(fields);
    const job = { upstream, lease: makeLease({ capTokens: 5 }), body: { prompt: "hi" } };
    return attempt(
      job,
      makeDeps(async () => responseOf(status, text)),
    );
  },
});

const line = (endpoint: Endpoint): Way => ({
  name: `a batch's line of ${endpoint}`,
  send: (fields, status, text) => {
    const raw = { endpoint, json: BODIES[endpoint] };
    const job = { upstream: upstreamFor(endpoint, fields), lease: makeLease(), body: { raw } };
    return attempt(
      job,
      makeDeps(async () => responseOf(status, text)),
    );
  },
});

const relayed = (endpoint: Endpoint, stream: boolean): Way => ({
  name: `/v1 ${endpoint}${stream ? ", streamed" : ""}`,
  send: async (fields, status, text) => {
    const upstream = upstreamFor(endpoint, fields);
    const job = makeJob({ upstream, endpoint, stream, request: requestOf(BODIES[endpoint]) });
    return failedOf(await new Attempt(() => responseOf(status, text)).run(job)).outcome;
  },
});

const WAYS: Way[] = [
  native("openai"),
  native("anthropic"),
  ...ENDPOINTS.map(line),
  ...ENDPOINTS.flatMap((endpoint) => [relayed(endpoint, false), relayed(endpoint, true)]),
];

const errorBody = (code: string | null): string => JSON.stringify({ error: { message: "no", type: null, code } });

/** As Azure sends it, OData's nested error included. */
const AZURE = JSON.stringify({
  error: {
    message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    type: null,
    param: "prompt",
    code: "bad_request",
    status: 400,
    innererror: { code: "ResponsibleAIPolicyViolation", content_filter_result: { hate: { filtered: true } } },
  },
});

describe.each(WAYS)("$name", ({ send }) => {
  it("treats every status as the table says, and counts each as answered", async () => {
    for (const errorsCost of ["free", "reservation"] as const) {
      for (const status of STATUSES) {
        const outcome = await send({ errorsCost }, status, errorBody(null));
        const { class: failureClass, retryable } = treatmentOf(status, [], errorsCost);
        const reason = failureClass === "rate_limited" ? { reason: "upstream_rate_limited" } : { retryable };
        expect(outcome, String(status)).toMatchObject({ kind: "failure", class: failureClass, answered: true, reason });
      }
    }
  });

  it("treats every code as the table says, and keeps it", async () => {
    for (const code of CODE_RULES.flatMap(({ codes }) => codes)) {
      const outcome = await send({}, 400, errorBody(code));
      const reason = { reason: "upstream_error", retryable: false, upstreamCode: code };
      expect(outcome, code).toMatchObject({ class: treatmentOf(400, [code], "free").class, reason });
    }
  });

  it("finds a content filter's code in Azure's inner error", async () => {
    const outcome = await send({}, 400, AZURE);
    expect(outcome).toMatchObject({ class: "unknown", reason: { retryable: false, upstreamCode: "bad_request" } });
  });
});

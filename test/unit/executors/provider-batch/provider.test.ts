/** The requests to a provider's Batch API, and what their answers mean. */
import { describe, expect, it } from "vitest";
import { providerAt } from "../../../../src/executors/provider-batch/provider.ts";
import { makeUpstream } from "../../providers/make.ts";

type Reply = { status?: number; body?: unknown; headers?: Record<string, string> } | "lost";

/** A provider that gives these replies in order, and the requests that it got. */
function at(...replies: Reply[]) {
  const requests: { method: string; url: string; body: unknown; headers: Headers }[] = [];
  const fetch = (url: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const { method = "GET", body, headers } = init;
    requests.push({ method, url: String(url), body, headers: new Headers(headers) });
    const reply = replies.shift();
    if (reply === undefined || reply === "lost") return Promise.reject(new TypeError("connection lost"));
    const { status = 200, body: sent = {}, headers: more = {} } = reply;
    return Promise.resolve(new Response(JSON.stringify(sent), { status, headers: more }));
  };
  const upstream = makeUpstream({ baseUrl: "https://acme.test/v1", apiKey: "sk-acme" });
  const provider = providerAt(upstream, { fetch, now: () => 0, timeout: () => new AbortController().signal });
  return { provider, requests };
}

const refused = (why: string, retryAfterMs: number | null = null) => ({ ok: false, why, retryAfterMs });

/** The metadata has the tag, so nothing else of a lost creation matters. */
const ANY = { createdAtMs: 0, count: 0, known: new Set<string>() };

describe("a file", () => {
  it("is uploaded as multipart, under the key, with the purpose batch", async () => {
    const { provider, requests } = at({ body: { id: "file-1" } });
    expect(await provider.upload('{"custom_id":"1"}\n')).toEqual({ ok: true, value: "file-1" });
    const [{ method, url, body, headers } = expect.fail("no request")] = requests;
    expect([method, url, headers.get("authorization")]).toEqual([
      "POST",
      "https://acme.test/v1/files",
      "Bearer sk-acme",
    ]);
    const form = body instanceof FormData ? body : expect.fail("no form");
    const file = form.get("file");
    expect(form.get("purpose")).toBe("batch");
    expect(file instanceof File ? await file.text() : file).toBe('{"custom_id":"1"}\n');
  });

  it.each([
    [{ status: 413 }, refused("refused")],
    [{ status: 401 }, refused("refused")],
    [{ status: 429, headers: { "retry-after": "7" } }, refused("later", 7_000)],
    [{ status: 429, body: { error: { code: "insufficient_quota", message: "none left" } } }, refused("refused")],
    [{ status: 503 }, refused("unknown")],
    ["lost" as const, refused("unknown")],
    [{ body: { object: "file" } }, refused("unknown")],
  ])("that is answered with %j", async (reply, expected) => {
    expect(await at(reply).provider.upload("")).toMatchObject(expected);
  });
});

describe("a batch", () => {
  it("is created for the file, with its tag in the metadata", async () => {
    const { provider, requests } = at({ body: { id: "batch_1" } });
    expect(await provider.create("file-1", "/v1/responses", "run/1/1/1")).toEqual({ ok: true, value: "batch_1" });
    expect(JSON.parse(String(requests[0]?.body))).toEqual({
      input_file_id: "file-1",
      endpoint: "/v1/responses",
      completion_window: "24h",
      metadata: { fanout: "run/1/1/1" },
    });
  });

  it("is found by its tag on a later page", async () => {
    const page = (id: string, tag: string, more: boolean) => ({
      body: { data: [{ id, metadata: { fanout: tag } }], has_more: more },
    });
    const { provider, requests } = at(page("batch_9", "other", true), page("batch_8", "mine", false));
    expect(await provider.find("mine", ANY)).toEqual({ ok: true, value: "batch_8" });
    expect(requests[1]?.url).toBe("https://acme.test/v1/batches?limit=100&after=batch_9");
  });

  it("is not found if no page has it", async () => {
    const { provider } = at({ body: { data: [{ id: "batch_9", metadata: null }], has_more: false } });
    expect(await provider.find("mine", ANY)).toEqual({ ok: true, value: null });
  });

  it("is cancelled, also if it has ended meanwhile", async () => {
    expect(await at({ body: {} }).provider.cancel("batch_1")).toMatchObject({ ok: true });
    expect(await at({ status: 409 }).provider.cancel("batch_1")).toMatchObject({ ok: true });
    expect(await at({ status: 500 }).provider.cancel("batch_1")).toMatchObject({ ok: false });
  });

  it.each([
    [{ status: "validating" }, { state: "working" }],
    [{ status: "cancelling" }, { state: "working" }],
    [{ status: "some_new_state" }, { state: "working" }],
    [
      { status: "failed", errors: { data: [{ code: "model_not_found" }] } },
      { state: "failed", isFull: false },
    ],
    [
      { status: "failed", errors: { data: [{ code: "token_limit_exceeded" }] } },
      { state: "failed", isFull: true },
    ],
    [
      { status: "cancelled", output_file_id: "file-2", error_file_id: "", request_counts: { completed: 4 } },
      { state: "ended", outputFileId: "file-2", errorFileId: null, completed: 4 },
    ],
    [{ status: "completed" }, { state: "ended", outputFileId: null, errorFileId: null, completed: null }],
  ])("that says %j", async (body, value) => {
    expect(await at({ body }).provider.look("batch_1")).toEqual({ ok: true, value });
  });

  it("is gone if the provider does not know it", async () => {
    expect(await at({ status: 404 }).provider.look("batch_1")).toEqual({ ok: true, value: { state: "gone" } });
  });
});

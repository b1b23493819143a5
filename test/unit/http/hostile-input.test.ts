/** Input made to be expensive or to be repeated: what nobody has vouched for is looked at once, and quoted in part. */
import { describe, expect, it } from "vitest";
import { createApp } from "../../../src/http/app.ts";
import { credentialOf } from "../../../src/http/auth/credential.ts";
import { jsonOf } from "../../../src/contract/body.ts";
import { prefersAsync } from "../../../src/contract/groups.ts";
import { readBatch } from "../../../src/contract/large-batch.ts";
import { parseHeaderValue } from "../../../src/files/header-value.ts";
import { requestedRange } from "../../../src/files/range.ts";
import {
  CREDENTIAL_CHARS_MAX,
  ERROR_MESSAGE_CHARS_MAX,
  JSON_BODY_DEPTH_MAX,
  JSON_VALUES_MAX,
  SCANNED_VALUES_MAX,
  NAME_CHARS_MAX,
} from "../../../src/limits.ts";
import { readRequest } from "../../../src/providers/formats/request/read.ts";
import { simulatedText } from "../../../src/providers/simulated/text.ts";
import { expectLinear } from "../../support/growth.ts";

const MILLION = 1_000_000;
const spaces = " ".repeat(MILLION);

const spacesOf = (count: number) => " ".repeat(count);
const lettersOf = (count: number) => "a".repeat(count);

const credential = (authorization: string, path = "/query") =>
  credentialOf({ path, header: (name) => (name === "authorization" ? authorization : undefined) });
const of = (authorization: string, path?: string) => () => credential(authorization, path);
const given =
  <T>(input: T, work: (input: T) => unknown) =>
  (): unknown =>
    work(input);
const encode = (text: string) => new TextEncoder().encode(text);

describe("a megabyte of header", () => {
  it.each<[string, (chars: number) => () => unknown]>([
    ["Bearer and spaces", (chars) => of(`Bearer ${spacesOf(chars)}`)],
    ["Bearer with spaces inside", (chars) => of(`Bearer a${spacesOf(chars)}b`)],
    ["Bearer with many short words", (chars) => of(`Bearer ${"a ".repeat(chars / 2)}`)],
    ["Basic and spaces", (chars) => of(`Basic ${spacesOf(chars)}!`)],
    ["Basic with spaces inside", (chars) => of(`Basic a${spacesOf(chars)}!`)],
    ["Basic letters that end otherwise", (chars) => of(`Basic ${lettersOf(chars)}!`)],
    ["Basic of a megabyte", (chars) => of(`Basic ${lettersOf(chars)}`)],
    ["a path that is one token", (chars) => of("", `/rollout/fo-run-${lettersOf(chars)}`)],
    ["a path of slashes", (chars) => of("", `/rollout/${"/".repeat(chars)}`)],
    ["a range of spaces", (chars) => given(`bytes=${spacesOf(chars)}x`, (text) => requestedRange(text, 10))],
    [
      "a range of spaces on both sides",
      (chars) => given(`bytes=${spacesOf(chars)}-${spacesOf(chars)}x`, (text) => requestedRange(text, 10)),
    ],
    ["parameters that never close", (chars) => given(`form-data${';a="'.repeat(chars / 40)}`, parseHeaderValue)],
    ["parameters of spaces", (chars) => given(`form-data;${spacesOf(chars)}`, parseHeaderValue)],
    ["preferences", (chars) => given(`${spacesOf(chars)}respond-async${spacesOf(chars)}x`, prefersAsync)],
  ])("is read in time that grows with its length and no faster: %s", (_, look) => {
    expectLinear(MILLION, look);
  });

  it("is no credential, while the longest credential is one", () => {
    expect(credential(`Bearer ${"a".repeat(CREDENTIAL_CHARS_MAX)}`)).toHaveLength(CREDENTIAL_CHARS_MAX);
    expect(credential(`Bearer ${"a".repeat(CREDENTIAL_CHARS_MAX + 1)}`)).toBeNull();
  });

  it("is answered with 401", async () => {
    const request = new Request("http://fanout.test/query", { method: "POST" });
    // As a server would see it that takes headers of any length and keeps their white space.
    const get = request.headers.get.bind(request.headers);
    request.headers.get = (name) => (name === "authorization" ? `Bearer a${spaces}b` : get(name));
    const env = { ADMIN_KEY: "k".repeat(32), UPSTREAMS: { sim: { kind: "simulated" } } } as never;
    expect((await createApp().fetch(request, env)).status).toBe(401);
  });
});

describe("a body of ten megabytes of brackets", () => {
  const brackets = (count: number) => "[".repeat(count);

  it.each<[string, (brackets: number) => () => unknown]>([
    ["as any JSON body", (count) => given(encode(brackets(count)), jsonOf)],
    ["as objects", (count) => given(encode('{"a":'.repeat(count / 5)), jsonOf)],
    ["as a batch", (count) => given(encode(`{"prompts":[${brackets(count)}`), readBatch)],
    ["as a request to /v1", (count) => given(encode(brackets(count)), (body) => readRequest("chat", body))],
    [
      "as a field of one",
      (count) => given(encode(`{"messages":${brackets(count / 10)}`), (body) => readRequest("chat", body)),
    ],
  ])("is refused with the depth, in time that grows with its length and no faster: %s", (_, read) => {
    const refused = read(10 * MILLION)() as { ok: false; reason: { message: string } };
    expect(refused.ok).toBe(false);
    expect(refused.reason.message).toMatch(/nesting|level/);
    expectLinear(10 * MILLION, read);
  });

  it("is as deep as it may be, and one level deeper", () => {
    const nested = (depth: number) => encode(`${"[".repeat(depth)}"[[\\"[["${"]".repeat(depth)}`);
    expect(jsonOf(nested(JSON_BODY_DEPTH_MAX)).ok).toBe(true);
    expect(jsonOf(nested(JSON_BODY_DEPTH_MAX + 1))).toMatchObject({
      reason: { message: expect.stringContaining(`at most ${JSON_BODY_DEPTH_MAX}`) },
    });
  });

  it("has as many values as it may have, and one more", () => {
    const values = (count: number) => encode(`[${"[],".repeat((count - 2) / 2)}"[,[,\\"[,"]`);
    expect(jsonOf(values(JSON_VALUES_MAX)).ok).toBe(true);
    expect(jsonOf(values(JSON_VALUES_MAX + 2))).toMatchObject({
      reason: { message: expect.stringContaining(`more than ${JSON_VALUES_MAX} values`) },
    });
  });

  it.each<[string, (body: Uint8Array) => { ok: boolean }, string]>([
    ["names", jsonOf, `{"prompt":"a",${'"k":1,'.repeat(JSON_VALUES_MAX)}`],
    ["objects", jsonOf, `{"messages":[${"{},".repeat(JSON_VALUES_MAX)}`],
    ["messages of /v1", (body) => readRequest("chat", body), `{"messages":[${'{"u":1},'.repeat(SCANNED_VALUES_MAX)}`],
    ["tokens of /v1", (body) => readRequest("embeddings", body), `{"input":[${"1,".repeat(SCANNED_VALUES_MAX)}`],
  ])("is refused at the first value beyond the bound, whatever follows: %s", (_, read, start) => {
    // What follows is no JSON, so who read on would say that.
    expect(read(encode(`${start}}}}}`))).toMatchObject({
      ok: false,
      reason: { message: expect.stringMatching(/more than \d+ values/) },
    });
  });

  it("does not take brackets in texts for depth", () => {
    const text = JSON.stringify({ prompt: `\\"${"[".repeat(1_000)}\\`, other: ["]", "\\"] });
    expect(jsonOf(encode(text))).toEqual({ ok: true, value: JSON.parse(text) });
  });
});

describe("a megabyte that is no JSON", () => {
  it.each<[string, (chars: number) => string]>([
    ["lines", (chars) => "\n".repeat(chars)],
    ["quotes", (chars) => '"'.repeat(chars)],
    ["backslashes", (chars) => `"${"\\".repeat(chars)}`],
    ["escaped quotes", (chars) => `"${'\\"'.repeat(chars / 2)}`],
  ])("is refused in time that grows with its length and no faster: %s", (_, textOf) => {
    expectLinear(MILLION, (chars) => given(encode(`${textOf(chars)}x`), jsonOf));
  });
});

describe("a prompt for the simulated model", () => {
  it.each<[string, (chars: number) => string]>([
    ["a list of spaces", (chars) => `WORDS: a,b${spacesOf(chars)}c\nTEXT: x`],
    [
      "a list of words",
      (chars) =>
        `WORDS: ${Array.from({ length: chars / 10 }, (_, at) => `w${at}`).join(",")}\nTEXT: ${lettersOf(chars)}`,
    ],
    ["lines of spaces", (chars) => `${spacesOf(chars)}\n${spacesOf(chars)}`],
  ])("is answered in time that grows with its length and no faster: %s", (_, promptOf) => {
    expectLinear(MILLION, (chars) => given(promptOf(chars), (prompt) => simulatedText("names", prompt)));
  });
});

describe("a name of a megabyte", () => {
  const object = { modelRules: () => ({ ok: true, rules: {} }), budget: () => null };
  const RUN = { get: () => object, idFromName: (id: string) => id };
  const env = { ADMIN_KEY: "k".repeat(32), UPSTREAMS: { sim: { kind: "simulated" } }, FILES: {}, RUN };
  const logged: string[] = [];
  const log = (message: string) => logged.push(message);
  const app = createApp({ now: Date.now, newRequestId: () => "id", log, random: () => 0 });
  const headers = {
    authorization: `Bearer ${"k".repeat(32)}`,
    "x-fanout-run": "run_1",
    "content-type": "application/json",
  };
  const name = "ab".repeat(20_000);
  const long = "ab".repeat(500_000);

  it.each([
    ["a field", "POST", "/query", { [long]: 1, prompt: "x" }],
    ["a field of a run", "POST", "/runs", { budget: { [name]: 1 } }],
    ["a field of an item", "POST", "/batch", { items: [{ prompt: "x", [long]: 1 }] }],
    ["a reserved parameter's neighbour", "POST", "/query", { prompt: "x", params: { stream: true, [long]: 1 } }],
    ["a field of a batch of files", "POST", "/v1/batches", { [name]: 1 }],
    ["a field twice", "POST", "/v1/chat/completions", `{"${long}":1,"${long}":1}`],
    ["a field of a message twice", "POST", "/v1/chat/completions", `{"messages":[{"${long}":1,"${long}":1}]}`],
    ["a path", "POST", `/${long}`, {}],
    ["an argument", "POST", "/rollout/run_1/v1/rlm/tools", { tool_name: "llm_batch", kwargs: { [long]: 1 } }],
  ])("does not come back in an error, nor in the log: %s", async (_, method, path, value) => {
    const body = typeof value === "string" ? value : JSON.stringify(value);
    const answer = await app.request(path, { method, headers, body }, env);
    const text = await answer.text();
    expect([answer.status >= 400, answer.status < 500]).toEqual([true, true]);
    expect(text.length).toBeLessThan(ERROR_MESSAGE_CHARS_MAX + 2 * NAME_CHARS_MAX);
    expect(logged).toEqual([]);
  });

  it("does not come back where it is a header's value", async () => {
    const answer = await app.request(
      "/query",
      { method: "POST", headers: { ...headers, "content-type": `x/${long}` }, body: "{}" },
      env,
    );
    const text = await answer.text();
    expect(answer.status).toBe(415);
    expect(text.length).toBeLessThan(ERROR_MESSAGE_CHARS_MAX + 2 * NAME_CHARS_MAX);
  });
});

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { convert } from "../../../cli/batch/input/convert.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fanout-convert-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Kind = "jsonl" | "text" | "csv";
type Options = { kind?: Kind; endpoint?: string | null; defaults?: Record<string, unknown> };

async function converted(text: string, { kind = "jsonl", endpoint = null, defaults = {} }: Options = {}) {
  const path = join(folder, "input.jsonl");
  const chunks = (async function* () {
    for (const piece of Buffer.from(text)) yield Buffer.from([piece]);
  })();
  const result = await convert(chunks, { kind, path, endpoint, serviceTier: null, defaults });
  const file = await readFile(path, "utf8");
  return {
    ...result,
    file,
    requests: file
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line)),
  };
}

/** The bodies of what the text becomes. */
async function bodies(text: string, options?: Options) {
  const { requests } = await converted(text, options);
  return requests.map((request: unknown) => (request instanceof Object && "body" in request ? request.body : null));
}

const user = (content: string) => ({ role: "user", content });

describe("convert", () => {
  it("passes requests on byte by byte, but for blank lines", async () => {
    const [one, two] = [
      '{"custom_id":"a", "method":"POST","url":"/v1/embeddings","body":{"n":12345678901234567890}}',
      '{"url":"/v1/embeddings","custom_id":"b","body":{}}',
    ];
    const { file, ids, lines, endpoint } = await converted(`\ufeff${one}\r\n\n${two}`);
    expect(file).toBe(`${one}\n${two}\n`);
    expect({ ids, lines, endpoint }).toEqual({ ids: ["a", "b"], lines: [1, 3], endpoint: "/v1/embeddings" });
  });

  it("makes requests of prompts, messages and plain strings, with ids of their own or by their place", async () => {
    const { requests, ids } = await converted(
      ['"one"', '{"id":7,"prompt":"two","model":"m"}', '{"messages":[{"role":"user","content":"three"}]}'].join("\n"),
    );
    expect(requests).toEqual([
      { custom_id: "row-1", method: "POST", url: "/v1/chat/completions", body: { messages: [user("one")] } },
      { custom_id: "7", method: "POST", url: "/v1/chat/completions", body: { model: "m", messages: [user("two")] } },
      { custom_id: "row-3", method: "POST", url: "/v1/chat/completions", body: { messages: [user("three")] } },
    ]);
    expect(ids).toEqual(["row-1", "7", "row-3"]);
  });

  it("takes what a row does not say from the options, and params above all", async () => {
    const defaults = { model: "d", system: "Be brief.", max_tokens: 9, temperature: 0 };
    const rows = [
      '"a"',
      '{"prompt":"b","model":"m","system":"s","max_tokens":1,"temperature":0.5,"params":{"seed":3,"max_tokens":2}}',
      '{"messages":[{"role":"system","content":"own"},{"role":"user","content":"c"}]}',
    ];
    const rest = { max_tokens: 9, temperature: 0 };
    expect(await bodies(rows.join("\n"), { defaults })).toEqual([
      { model: "d", messages: [{ role: "system", content: "Be brief." }, user("a")], ...rest },
      { model: "m", messages: [{ role: "system", content: "s" }, user("b")], max_tokens: 2, temperature: 0.5, seed: 3 },
      { model: "d", messages: [{ role: "system", content: "own" }, user("c")], ...rest },
    ]);
  });

  it("speaks each endpoint's words", async () => {
    const defaults = { model: "m", max_tokens: 5 };
    const of = (endpoint: string, more = {}) => bodies('"p"', { endpoint, defaults: { ...defaults, ...more } });
    expect(await of("/v1/completions")).toEqual([{ model: "m", prompt: "p", max_tokens: 5 }]);
    expect(await of("/v1/responses", { system: "s" })).toEqual([
      { model: "m", instructions: "s", input: "p", max_output_tokens: 5 },
    ]);
    expect(await bodies('"p"', { endpoint: "/v1/embeddings" })).toEqual([{ input: "p" }]);
    await expect(of("/v1/embeddings")).rejects.toThrow("Line 1: /v1/embeddings does not accept max_tokens.");
  });

  it("reads the lines of a text, blank ones left out, as prompts", async () => {
    const { ids, lines } = await converted("one\r\n\n  two \n", { kind: "text" });
    expect({ ids, lines }).toEqual({ ids: ["row-1", "row-2"], lines: [1, 3] });
    expect(await bodies("one\r\n\n  two \n", { kind: "text" })).toEqual([
      { messages: [user("one")] },
      { messages: [user("  two ")] },
    ]);
  });

  it("reads the columns of a .csv by their names and reports which ones it ignored", async () => {
    const text = '\ufeffTopic,Prompt,id,model\r\nx,"one,\r\n""two""",a,\r\ny,three,,m\r\n';
    const { requests, lines, ignored } = await converted(text, { kind: "csv", defaults: { model: "d" } });
    expect(requests).toMatchObject([
      { custom_id: "a", body: { model: "d", messages: [user('one,\r\n"two"')] } },
      { custom_id: "row-2", body: { model: "m", messages: [user("three")] } },
    ]);
    expect({ lines, ignored }).toEqual({ lines: [2, 4], ignored: ["topic"] });
  });

  it.each([
    ["jsonl", '"a"\n{"prompt":', /^Line 2 is not JSON/],
    ["jsonl", "[1]", /^Line 1 is neither a JSON object nor a string/],
    ["jsonl", '{"text":"a"}', /^Line 1 has neither a prompt nor messages/],
    ["jsonl", '{"prompt":"a","messages":[]}', /^Line 1 has both/],
    ["jsonl", '\n{"prompt":" "}', /^Line 2 has an empty prompt/],
    ["jsonl", '{"prompt":5}', /^Line 1: prompt must be text/],
    ["jsonl", '{"prompt":"a","max_tokens":0}', /^Line 1: max_tokens must be a whole number above zero/],
    ["jsonl", '{"messages":[]}', /^Line 1: messages must be a list that is not empty/],
    ["jsonl", '{"body":{}}', /^Line 1 is a request without a custom_id/],
    ["jsonl", '{"id":"x","prompt":"a"}\n\n{"id":"x","prompt":"b"}', /^Lines 1 and 3 have the same id: x/],
    ["jsonl", "\n \n", /^The input is empty/],
    ["text", "", /^The input is empty/],
    ["csv", "prompt\n", /^The input is empty/],
    [
      "csv",
      "question,id\n",
      /^The first line must be a header with a column "prompt", .*\. Its columns are: question, id\.$/,
    ],
    ["csv", "id,prompt\n1,a,b\n", /^Line 2 has 3 fields; the header has 2/],
    ["csv", "id,prompt\n1,\n", /^Line 2 has an empty prompt/],
    ["csv", 'prompt\n"a\n', /^The quote that opens in line 2 is never closed/],
  ] as const)("refuses of a %s: %j", async (kind, text, message) => {
    await expect(converted(text, { kind })).rejects.toThrow(message);
  });

  it("has one hash for the same question, and another where an option changes it", async () => {
    const hashOf = async (text: string, options?: Options) => (await converted(text, options)).hash;
    const hash = await hashOf('"a"\n"b"');
    expect(await hashOf('\n"a"\r\n"b"\n')).toBe(hash);
    expect(await hashOf("a\nb", { kind: "text" })).toBe(hash);
    expect(await hashOf('"a"\n"c"')).not.toBe(hash);
    expect(await hashOf('"a"\n"b"', { defaults: { model: "m" } })).not.toBe(hash);
    const request = '{"custom_id":"a","body":{}}';
    expect(await hashOf(request, { endpoint: "/v1/responses" })).not.toBe(await hashOf(request));
  });
});

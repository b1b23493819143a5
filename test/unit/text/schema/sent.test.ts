/** In which form a schema reaches each kind of upstream, and what a refusal of that form is followed by. */
import { describe, expect, it } from "vitest";
import { REFUSED_SCHEMAS_KEPT } from "../../../../src/limits.ts";
import { chatResponseFormat, messagesOutputFormat, schemaInstruction } from "../../../../src/text/schema/forms.ts";
import { RefusedSchemas } from "../../../../src/text/schema/sent.ts";
import { attempt } from "../../../../src/providers/attempt.ts";
import { completion, makeAnthropic, makeDeps, makeLease, makeUpstream, message } from "../../providers/make.ts";

const closed = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const CLOSED = closed({ a: { type: "string" }, list: { type: "array", items: closed({ b: { $ref: "#/$defs/n" } }) } });

describe("the field of a provider", () => {
  it.each<[string, Record<string, unknown>, boolean, boolean]>([
    ["closed, all required", { ...CLOSED, $defs: { n: { type: "integer" } } }, true, true],
    ["with a property that is not required", closed({ a: { type: "string" } }, []), false, true],
    ["with a bound", closed({ a: { type: "integer", minimum: 1 } }), true, false],
    ["with a length", closed({ a: { type: "string", maxLength: 1 } }), false, false],
    ["open", { type: "object", properties: { a: { type: "string" } }, required: ["a"] }, false, false],
    ["open inside", closed({ a: { anyOf: [{ type: "null" }, { type: "object" }] } }), false, false],
    ["that is a list", { type: "array", items: { type: "string" } }, false, true],
    ["that is anything", {}, false, true],
    ["with a schema that is true", closed({ a: true }), false, false],
  ])("is strict for OpenAI, and taken by Anthropic, if they accept a schema %s", (_, schema, strict, isTaken) => {
    expect(chatResponseFormat(schema)).toEqual({
      type: "json_schema",
      json_schema: { name: "answer", schema, strict },
    });
    expect(messagesOutputFormat(schema)).toEqual(isTaken ? { type: "json_schema", schema } : null);
  });
});

type Sent = Record<string, unknown>;

/** An upstream that records requests, and answers with 400 while a request has this field. */
function refusing(field: string, answer: string, why = `Unsupported parameter: ${field}`) {
  const sent: Sent[] = [];
  const fetchLike: typeof fetch = async (_, init) => {
    const body = JSON.parse(String(init?.body)) as Sent;
    sent.push(body);
    if (!(field in body)) return new Response(answer);
    return Response.json({ error: { message: why, type: "invalid_request_error" } }, { status: 400 });
  };
  return { sent, fetchLike };
}

describe("an attempt at a call with a schema", () => {
  const schema = CLOSED;
  const job = { upstream: makeUpstream(), lease: makeLease(), body: { prompt: "p", system: "Be kind.", schema } };

  it.each([
    ["openai", makeUpstream(), "response_format", completion("{}")],
    ["anthropic", makeAnthropic(), "output_config", message([{ type: "text", text: "{}" }])],
  ])(
    "that %s refuses for the field is made with an instruction instead, and so are later ones",
    async (_, upstream, field, text) => {
      const { sent, fetchLike } = refusing(field, text);
      const refusedSchemas = new RefusedSchemas();
      const deps = () => makeDeps(fetchLike, { refusedSchemas });
      expect(await attempt({ ...job, upstream }, deps())).toMatchObject({ kind: "success", text: "{}" });
      expect(sent.map((body) => field in body)).toEqual([true, false]);
      expect(JSON.stringify(sent[1])).toContain(JSON.stringify(schemaInstruction(schema)).slice(1, -1));
      expect(JSON.stringify(sent[1])).toContain("Be kind.");
      await attempt({ ...job, upstream }, deps());
      expect(sent).toHaveLength(3);
      // What one client's schema met is no reason to treat another's so.
      await attempt({ ...job, upstream, body: { prompt: "p", schema: closed({ z: { type: "null" } }) } }, deps());
      expect(sent.map((body) => field in body)).toEqual([true, false, false, true, false]);
    },
  );

  it("has the instruction at once where Anthropic's field does not take the schema", async () => {
    const { sent, fetchLike } = refusing("output_config", message([{ type: "text", text: "1" }]));
    const open = { type: "integer", minimum: 1 };
    await attempt({ ...job, upstream: makeAnthropic(), body: { prompt: "p", schema: open } }, makeDeps(fetchLike));
    expect(sent).toMatchObject([{ system: schemaInstruction(open) }]);
  });

  it("keeps what else a client sets in output_config", async () => {
    const { sent, fetchLike } = refusing("none", message([{ type: "text", text: "1" }]));
    const body = { prompt: "p", schema, params: { output_config: { effort: "low" } } };
    await attempt({ ...job, upstream: makeAnthropic(), body }, makeDeps(fetchLike));
    expect(sent).toMatchObject([{ output_config: { effort: "low", format: { type: "json_schema", schema } } }]);
  });

  it("that is refused for another reason fails as any other", async () => {
    const { sent, fetchLike } = refusing("model", completion("{}"), "The prompt is not allowed");
    expect(await attempt(job, makeDeps(fetchLike))).toMatchObject({ kind: "failure", class: "rejected" });
    expect(sent).toHaveLength(1);
  });
});

describe("the schemas that upstreams have refused", () => {
  it("are remembered up to the bound, the newest", () => {
    const refused = new RefusedSchemas();
    for (let at = 0; at <= REFUSED_SCHEMAS_KEPT; at++) refused.add("up", "m", { at });
    expect(refused.has("up", "m", { at: 0 })).toBe(false);
    expect(refused.has("up", "m", { at: 1 })).toBe(true);
    expect(refused.has("up", "other", { at: 1 })).toBe(false);
  });
});

import { describe, expect, it } from "vitest";
import { PART_KINDS } from "../../../../../src/providers/formats/request/content-part-kinds.ts";
import { foldCase, type FieldRule, type FieldTable } from "../../../../../src/providers/formats/request/field-table.ts";
import { OWN_PARAMS } from "../../../../../src/providers/formats/request/own-params.ts";
import { REQUEST_FIELDS } from "../../../../../src/providers/formats/request/request-fields.ts";
import { CONTENT_WAYS, LIMITED, refusalUnder, WAYS_IN, type Fields, type WayIn } from "./ways-in.ts";
import { expectLinear } from "../../../../support/growth.ts";

/** A field of a table with its path through the objects that hold it. */
type Known = { path: readonly string[]; rule: FieldRule; table: FieldTable };

function* knownFields(table: FieldTable, holders: readonly string[] = []): Generator<Known> {
  for (const [name, rule] of table.rules) {
    const path = [...holders, name];
    yield { path, rule, table };
    if (rule.kind === "harmless" && rule.inside !== undefined) yield* knownFields(rule.inside, path);
  }
}

/** A body's field that sets `value` at the end of a path. */
function fieldsAt([name = "", ...inner]: readonly string[], value: unknown): Fields {
  return [[name, inner.reduceRight((inside: unknown, key) => ({ [key]: inside }), value)]];
}

/** Values that the readers of these fields demand; any other field takes any value. */
const TYPED: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["stream", false],
  ["model", "m"],
  ["stream_options.include_usage", true],
  // Below every cap.
  ["thinking.budget_tokens", 1_024],
  ["reasoning.max_tokens", 1_024],
]);

function harmlessValue({ path, rule }: Known): unknown {
  if (rule.kind === "harmless" && rule.inside !== undefined) return {};
  return TYPED.get(path.join(".")) ?? "x";
}

/** A harmless field in an object that has what its table demands beside an id. */
function harmlessFields(known: Known): Fields {
  const value = harmlessValue(known);
  const content = known.table.carries?.[0];
  const name = known.path.at(-1) ?? "";
  if (content === undefined || known.path.length === 1) return fieldsAt(known.path, value);
  return fieldsAt(known.path.slice(0, -1), { [content]: "x", [name]: value });
}

const scalarOf = (text: string): unknown => (text === "false" ? false : text === "1" ? 1 : text);

/** The fields of a way in that `params` may hold. */
function fieldsOf(way: WayIn, kind: (rule: FieldRule) => boolean): Known[] {
  const all = [...knownFields(REQUEST_FIELDS[way.family])];
  return all.filter(({ path, rule }) => kind(rule) && !(way.isParams && OWN_PARAMS.has(path[0] ?? "")));
}

const isUnreservable = (rule: FieldRule): boolean => rule.kind === "unreservable" || rule.kind === "price";

function factsWith(way: WayIn, fields: Fields) {
  const read = way.read(fields);
  if ("refused" in read)
    throw new Error(`${JSON.stringify(fields)} is always refused for ${read.refused ?? "the body"}`);
  return read.facts;
}

describe.each(WAYS_IN)("$name", (way) => {
  it("refuses each unreservable field under a limit that it spends, and accepts it without one", () => {
    const fields = fieldsOf(way, isUnreservable);
    expect(fields.length).toBeGreaterThan(30);
    for (const { path, rule } of fields) {
      const name = path.join(".");
      if (rule.kind !== "unreservable" && rule.kind !== "price") continue;
      const facts = factsWith(way, fieldsAt(path, "some value"));
      for (const dimension of rule.spends) {
        const reason = refusalUnder(facts, { [dimension]: LIMITED.usd });
        expect(reason, name).toMatchObject({ reason: "invalid_request", message: expect.stringContaining(rule.why) });
        expect(reason).toMatchObject({ param: expect.stringMatching(new RegExp(`${name}$`)) });
        expect(refusalUnder(facts, { [dimension]: LIMITED.usd }, { allowParams: [name] }), name).toBeNull();
      }
      expect(refusalUnder(facts, {}), name).toBeNull();
      expect(refusalUnder(facts, { calls: 5 }), name).toBeNull();
      for (const harmless of rule.harmless ?? []) {
        expect(
          refusalUnder(factsWith(way, fieldsAt(path, scalarOf(harmless))), LIMITED),
          `${name} ${harmless}`,
        ).toBeNull();
      }
    }
  });

  it("accepts each harmless field under every limit", () => {
    const fields = fieldsOf(way, ({ kind }) => kind === "harmless");
    expect(fields.length).toBeGreaterThan(15);
    for (const known of fields) {
      const facts = factsWith(way, harmlessFields(known));
      expect(refusalUnder(facts, LIMITED), known.path.join(".")).toBeNull();
    }
  });

  it("always refuses a known name in another case, at the top and in each object that is read", () => {
    let variants = 0;
    for (const { path } of knownFields(REQUEST_FIELDS[way.family])) {
      const name = path.at(-1) ?? "";
      // An own name that holds the object is refused for itself.
      if (way.isParams && path.length > 1 && OWN_PARAMS.has(path[0] ?? "")) continue;
      const table = path.slice(0, -1).reduce<FieldTable>(innerTable, REQUEST_FIELDS[way.family]);
      for (const folded of foldedForms(name).filter((form) => !table.rules.has(form))) {
        if (path.join(".") === "model") {
          // Which models a run may use is promised under no limit, too.
          expect(way.read([[folded, "dear"]])).toEqual({ refused: folded });
          continue;
        }
        for (const value of ["some value", null]) {
          const facts = factsWith(way, fieldsAt([...path.slice(0, -1), folded], value));
          const allowParams = [folded, name, path.join(".")];
          expect(refusalUnder(facts, { usd: LIMITED.usd }, { allowParams }), folded).toMatchObject({
            message: expect.stringContaining(`write ${table.folded().get(foldCase(folded)) ?? ""}.`),
          });
          expect(refusalUnder(facts, {}), folded).toBeNull();
        }
        variants += 1;
      }
    }
    expect(variants).toBeGreaterThan(100);
  });

  it("refuses an unknown field under a limit, unless the operator allows it, and accepts it without one", () => {
    // A native field of this name is dropped with the rest of what JSON cannot mean by it.
    const names = ["enable_everything", "constructor", "messages[0]", "é", ""];
    for (const name of way.isParams ? names : [...names, "__proto__"]) {
      const facts = factsWith(way, [[name, { deep: [1] }]]);
      expect(refusalUnder(facts, { completion_tokens: 1e9 }), name).toMatchObject({
        param: expect.stringContaining(name),
      });
      expect(refusalUnder(facts, { calls: 1 })).toBeNull();
    }
    const facts = factsWith(way, [["enable_everything", 1]]);
    expect(refusalUnder(facts, LIMITED, { allowParams: ["enable_everything"] })).toBeNull();
    expect(refusalUnder(facts, LIMITED, { allowParams: ["enable_*", "Enable_Everything"] })).not.toBeNull();
    expect(refusalUnder(factsWith(way, [["enable_everything", null]]), LIMITED)).toBeNull();
  });

  it("finds a field behind many that are allowed", () => {
    const allowed = Array.from({ length: 60 }, (_, index) => [`allowed_${index}`, 1] as const);
    const allowParams = allowed.map(([name]) => name);
    expect(refusalUnder(factsWith(way, allowed.slice(0, 16)), LIMITED, { allowParams })).toBeNull();
    expect(refusalUnder(factsWith(way, allowed), LIMITED, { allowParams })).not.toBeNull();
    const hidden = factsWith(way, [...allowed.slice(0, 16), ["plugins", [{ id: "web" }]]]);
    expect(refusalUnder(hidden, LIMITED, { allowParams })).toMatchObject({ param: expect.stringContaining("plugins") });
    expect(hidden.unbounded).toHaveLength(17);
  });

  it("reads a body of many unknown fields in time that grows with it, and lets nothing through unread", () => {
    const at = way.family === "embeddings" ? "messages" : "tools";
    const fieldsOf = (count: number): Fields => [
      [at, Array.from({ length: count }, () => ({ type: "function", a: 1, b: 2 }))],
    ];
    expectLinear(4_000, (count) => {
      const fields = fieldsOf(count);
      return () => factsWith(way, fields);
    });
    const facts = factsWith(way, fieldsOf(12_000));
    expect(refusalUnder(facts, LIMITED, { allowParams: [`${at}.a`, `${at}.b`, `${at}.type`] })).not.toBeNull();
    expect(facts.unbounded?.length).toBeLessThan(6);
  });

  it("suggests the known name that is most similar", () => {
    const refusal = (name: string) => refusalUnder(factsWith(way, [[name, 1]]), LIMITED);
    const similar =
      way.family === "embeddings" ? ["dimnesions", "dimensions"] : ["presence_penality", "presence_penalty"];
    expect(refusal(similar[0] ?? "")).toMatchObject({
      message: expect.stringContaining(`Did you mean ${similar[1]}?`),
    });
    expect(refusal("entirely_else")).toMatchObject({ message: expect.not.stringContaining("Did you mean") });
  });
});

function innerTable({ rules }: FieldTable, name: string): FieldTable {
  const rule = rules.get(name);
  if (rule?.kind !== "harmless" || rule.inside === undefined) throw new Error(`${name} has no inner table`);
  return rule.inside;
}

/** A name as a server that compares keys without case would also read it. */
function foldedForms(name: string): string[] {
  const forms = [
    name.toUpperCase(),
    name.charAt(0).toUpperCase() + name.slice(1),
    name.replace("s", "\u017f"),
    name.replace("k", "\u212a"),
  ];
  return forms.filter((form) => form !== name);
}

const DATA = "QUJD".repeat(50);

/** A part of each kind, and what bounds it. */
const PARTS: Readonly<Record<string, { part: object; media?: number; files?: number }>> = {
  text: { part: { text: "x" } },
  input_text: { part: { text: "x" } },
  output_text: { part: { text: "x", annotations: [] } },
  refusal: { part: { refusal: "no" } },
  summary_text: { part: { text: "x" } },
  reasoning_text: { part: { text: "x" } },
  reference: { part: { reference_ids: [1] } },
  redacted_thinking: { part: { data: DATA } },
  tool_use: { part: { id: "t", name: "f", input: { Any: { thing: DATA } } } },
  thinking: { part: { thinking: "x", signature: DATA } },
  tool_result: { part: { tool_use_id: "t", content: [{ type: "image_url", image_url: { url: DATA } }] }, media: 1 },
  search_result: { part: { source: "s", title: "t", content: [{ type: "text", text: "x" }] } },
  document: { part: { source: { type: "base64", media_type: "application/pdf", data: DATA } }, files: 1 },
  image: { part: { source: { type: "base64", media_type: "image/png", data: DATA } }, media: 1 },
  image_url: { part: { image_url: { url: DATA, detail: "low" } }, media: 1 },
  input_image: { part: { image_url: DATA }, media: 1 },
  input_audio: { part: { input_audio: { data: DATA, format: "wav" } }, files: 1 },
  audio_url: { part: { audio_url: { url: DATA } }, files: 1 },
  video_url: { part: { video_url: { url: DATA } }, files: 1 },
  file: { part: { file: { file_data: DATA, filename: "f" } }, files: 1 },
  input_file: { part: { file_data: DATA }, files: 1 },
  document_url: { part: { document_url: DATA }, files: 1 },
};

describe.each(CONTENT_WAYS)("content by $name", ({ read }) => {
  it("is bounded by its kind, for every kind of the table", () => {
    expect(Object.keys(PARTS).sort()).toEqual([...PART_KINDS.keys()].sort());
    const emptyBytes = read([]).promptBytes;
    for (const [type, { part, media = 0, files = 0 }] of Object.entries(PARTS)) {
      const whole = { type, ...part };
      const facts = read([whole]);
      expect([facts.mediaParts, facts.fileParts ?? 0, facts.unbounded], type).toEqual([media, files, undefined]);
      const dropped = media + files > 0 ? DATA.length + 2 : 0;
      expect(facts.promptBytes - emptyBytes, type).toBe(JSON.stringify(whole).length - dropped);
      const needs = media > 0 ? "media_tokens_max" : files > 0 ? "file_tokens_max" : null;
      const refusal = refusalUnder(facts, { usd: LIMITED.usd });
      if (needs === null) expect(refusal, type).toBeNull();
      else expect(refusal, type).toMatchObject({ reason: "infeasible", message: expect.stringContaining(needs) });
      const bounds = { tokensPerByte: 1, mediaTokensMax: 10, fileTokensMax: 10 };
      expect(refusalUnder(facts, LIMITED, { bounds }), type).toBeNull();
    }
  });

  it("of an unknown kind counts with all its bytes and is refused under a limit, whatever media are allowed", () => {
    const bounds = { tokensPerByte: 1, mediaTokensMax: 1, fileTokensMax: 1 };
    for (const part of [
      { type: "hologram", data: DATA },
      { data: DATA },
      { type: ["text"], text: DATA },
      { type: null },
    ]) {
      const facts = read([part]);
      expect(facts.mediaParts).toBe(0);
      expect(facts.promptBytes - read([]).promptBytes).toBe(JSON.stringify(part).length);
      expect(refusalUnder(facts, { usd: LIMITED.usd }, { bounds })).toMatchObject({ reason: "invalid_request" });
      expect(refusalUnder(facts, { calls: 5 })).toBeNull();
    }
  });

  it("is refused under a limit for an unknown or folded name in each part", () => {
    for (const [type, { part }] of Object.entries(PARTS)) {
      for (const name of ["enable_everything", "TYPE", "Text", "\u017fource", "cache_Control"]) {
        const facts = read([{ type, ...part, [name]: "x" }]);
        const bounds = { tokensPerByte: 1, mediaTokensMax: 1, fileTokensMax: 1 };
        expect(refusalUnder(facts, LIMITED, { bounds }), `${type}.${name}`).toMatchObject({
          param: expect.stringContaining(name),
        });
      }
    }
  });
});

/**
 * `run_if`: when a task starts. A rule over how its dependencies ended, or a condition on their outputs, which is also what the `when`
 * of an alternative has.
 */
import * as z from "zod";
import { CONDITION_TERMS_MAX, CONDITION_TEXT_CHARS_MAX, NAME_CHARS_MAX, PATTERN_CHARS_MAX } from "../../limits.ts";
import type { Condition, OutputTest } from "../../run/answers/condition.ts";
import { compilePattern } from "../../text/pattern/pattern.ts";
import { invalid, type Parsed } from "../errors.ts";
import { ABSENT, exactlyOneOf } from "../fields.ts";
import { strictFields } from "../strict-fields.ts";
import { JSON_GATE_FAULT, jsonGateOf } from "../steps/cascade.ts";
import { atFirstUse } from "../../at-first-use.ts";

const text = z.string().max(CONDITION_TEXT_CHARS_MAX);

const comparison = atFirstUse(() =>
  strictFields({
    task: z.string().meta({ description: "The task whose output is compared; it becomes a dependency" }),
    json: z
      .string()
      .max(2 * NAME_CHARS_MAX)
      .optional()
      .meta({
        description:
          "A comparison with a value in the output's JSON: `$.score > 0.5`. A missing value, null, or an output without JSON meets none",
      }),
    equals: text.optional().meta({ description: "The whole text, without white space around it" }),
    contains: text.min(1).optional().meta({ description: "A part of the text" }),
    matches: z.string().min(1).max(PATTERN_CHARS_MAX).optional().meta({
      description:
        "A regular expression that matches somewhere; JavaScript's `u` syntax without look-around and back-references",
    }),
    flags: z.enum(["i", "s", "is"]).optional().meta({ description: "Flags of `matches`" }),
  }).meta({
    id: "OutputComparison",
    ...exactlyOneOf([
      { required: ["json"], properties: { flags: ABSENT } },
      { required: ["equals"], properties: { flags: ABSENT } },
      { required: ["contains"], properties: { flags: ABSENT } },
      ["matches"],
    ]),
  }),
);

const otherwise = atFirstUse(() =>
  z
    .strictObject({ else: z.string() })
    .meta({ id: "Else", description: "Holds if that task was skipped because its own condition does not hold" }),
);

const term = atFirstUse(() => z.union([comparison(), otherwise()]));
const termsOf = <T extends z.ZodType>(part: T) => z.array(part).min(1).max(CONDITION_TERMS_MAX);
const inner = atFirstUse(() =>
  z.union([term(), z.strictObject({ all: termsOf(term()) }), z.strictObject({ any: termsOf(term()) })]),
);

/** A condition on outputs. Two levels say all that conditions can say: any of several combinations, or all of several choices. */
const condition = atFirstUse(() =>
  z.union([term(), z.strictObject({ all: termsOf(inner()) }), z.strictObject({ any: termsOf(inner()) })]),
);
type SentCondition = z.infer<ReturnType<typeof condition>> | z.infer<ReturnType<typeof inner>>;

const CONDITION_FORMS =
  '{"task": an id} with one of json, equals, contains and matches, {"else": an id}, or {"all": [conditions]} or {"any": [conditions]}';

export const runIf = atFirstUse(() =>
  z.union(
    [z.enum(["all_success", "any", "always"]), z.strictObject({ at_least: z.number().min(0).max(1) }), condition()],
    {
      error: `expected "all_success", "any", "always", {"at_least": a share from 0 to 1}, or a condition: ${CONDITION_FORMS}`,
    },
  ),
);

/** One of `alternatives`. */
export const alternative = atFirstUse(() =>
  z.union(
    [
      z.string(),
      z.strictObject({
        id: z.string(),
        when: condition().meta({
          description: "The alternative is passed over where this does not hold. It becomes its `run_if`",
        }),
      }),
    ],
    { error: `expected the id of a task, or {"id": it, "when": a condition}. A condition is ${CONDITION_FORMS}` },
  ),
);

/** `run_if` as src/run/graph reads it: a condition names tasks by their ids. */
export type RequestedRunIf = "all_success" | "any" | "always" | { atLeast: number } | { condition: Condition<string> };

/** When a task starts that names its rule at `path`; null = it names none. */
export function runIfOf(
  sent: z.infer<ReturnType<typeof runIf>> | undefined,
  path: string,
): Parsed<RequestedRunIf | null> {
  if (sent === undefined || typeof sent === "string") return { ok: true, value: sent ?? null };
  if ("at_least" in sent) return { ok: true, value: { atLeast: sent.at_least } };
  const read = conditionOf(sent, path);
  return read.ok ? { ok: true, value: { condition: read.value } } : read;
}

/** An alternative as src/run/graph reads it: its id, alone or with the condition under which it is tried. */
export type RequestedAlternative = string | { id: string; when: Condition<string> };

/** The alternatives of a task that names them at `path`. */
export function alternativesOf(
  sent: readonly z.infer<ReturnType<typeof alternative>>[],
  path: string,
): Parsed<readonly RequestedAlternative[]> {
  const read: RequestedAlternative[] = [];
  for (const [index, each] of sent.entries()) {
    if (typeof each === "string") read.push(each);
    else {
      const when = conditionOf(each.when, `${path}[${index}].when`);
      if (!when.ok) return when;
      read.push({ id: each.id, when: when.value });
    }
  }
  return { ok: true, value: read };
}

function conditionOf(sent: SentCondition, path: string): Parsed<Condition<string>> {
  if ("else" in sent) return { ok: true, value: { otherwise: sent.else } };
  if ("task" in sent) {
    const test = testOf(sent, path);
    return test.ok ? { ok: true, value: { task: sent.task, test: test.value } } : test;
  }
  const [name, sentParts] = "all" in sent ? (["all", sent.all] as const) : (["any", sent.any] as const);
  const parts: Condition<string>[] = [];
  for (const [index, each] of sentParts.entries()) {
    const part = conditionOf(each, `${path}.${name}[${index}]`);
    if (!part.ok) return part;
    parts.push(part.value);
  }
  return { ok: true, value: name === "all" ? { all: parts } : { any: parts } };
}

function testOf(sent: z.infer<ReturnType<typeof comparison>>, path: string): Parsed<OutputTest> {
  const { json, equals, contains, matches, flags } = sent;
  if ([json, equals, contains, matches].filter((each) => each !== undefined).length !== 1) {
    return invalid(path, "expected exactly one of json, equals, contains, matches");
  }
  if (flags !== undefined && matches === undefined) return invalid(`${path}.flags`, "is for matches only");
  if (equals !== undefined) return { ok: true, value: { kind: "equals", text: equals } };
  if (contains !== undefined) return { ok: true, value: { kind: "contains", text: contains } };
  if (matches !== undefined) {
    const compiled = compilePattern(matches, flags);
    if (!compiled.ok) return invalid(`${path}.matches`, compiled.message);
    return { ok: true, value: { kind: "matches", source: matches, flags: flags ?? "" } };
  }
  const gate = jsonGateOf(json ?? "");
  if (gate === null) return invalid(`${path}.json`, JSON_GATE_FAULT);
  if (gate.value === null && gate.operator !== "!=") {
    return invalid(`${path}.json`, "can never hold: null is no answer. Expected != null, which any value meets");
  }
  return { ok: true, value: { kind: "json", ...gate } };
}

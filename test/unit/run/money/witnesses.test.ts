import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testimonyOf, withReport, type Witness } from "../../../../src/run/money/witnesses.ts";
import { learned } from "../../../../src/run/learned/reports.ts";
import { Templates, type TemplateRow } from "../../../../src/run/learned/templates.ts";
import {
  PROMPT_TOKENS_FIXED_OPENAI,
  TEMPLATE_LIFE_MS,
  TEMPLATE_WITNESSES_MAX,
  TEMPLATES_PER_TREE_MAX,
} from "../../../../src/limits.ts";
import { makeFacts, makeTarget } from "../../../support/engine.ts";

const saw = (root: string, excessTokens: number, seenAtMs = 0): Witness => ({
  ...{ root, seenAtMs, excessTokens, leastTokens: excessTokens + 10 },
});

/** The rows of an upstream object, and the runs that exchange with it. */
class Store {
  rows: TemplateRow[] = [];

  report(root: string, seen: TemplateRow, nowMs = 0): void {
    const changed = learned(this.rows, [{ ...seen, root }], nowMs);
    const keys = new Set(changed.map(({ model, shape }) => model + shape));
    this.rows = [...this.rows.filter(({ model, shape }) => !keys.has(model + shape)), ...changed];
  }

  /** A run of a tree that has read all. */
  run(root: string, nowMs = 0): Templates {
    const templates = new Templates(() => null, root);
    templates.read(TARGET.upstream, this.rows, nowMs);
    return templates;
  }
}

const plain = makeTarget();
const bounds = { ...plain.bounds, fixedTokens: PROMPT_TOKENS_FIXED_OPENAI, learnsTemplate: true };
const TARGET = { ...plain, bounds };
const row = (facts: Partial<TemplateRow>): TemplateRow => ({
  ...{ model: TARGET.model, shape: "chat", leastTokens: 400, excessTokens: 390 },
  ...facts,
});
const settledIn = (templates: Templates): number | undefined =>
  templates.overheadOf(TARGET, makeFacts({}), 0)?.settledTokens;

describe("what one tree of runs has seen", () => {
  it("counts for itself at once, and for others when a second tree has seen it", () => {
    const store = new Store();
    store.report("a", row({}));
    expect(settledIn(store.run("a"))).toBe(390);
    expect(settledIn(store.run("b"))).toBe(PROMPT_TOKENS_FIXED_OPENAI);
    store.report("a", row({ excessTokens: 900 }));
    expect(settledIn(store.run("b"))).toBe(PROMPT_TOKENS_FIXED_OPENAI);
    store.report("b", row({ excessTokens: 380 }));
    expect(settledIn(store.run("c"))).toBe(380);
    expect(settledIn(store.run("a"))).toBe(900);
  });

  it("counts in the run itself before anything is stored", () => {
    const templates = new Templates(() => [], "a");
    templates.learn(TARGET, "chat", { promptTokens: 400, byteTokensMax: 10, textRatio: null });
    expect(settledIn(templates)).toBe(390);
    expect(templates.takeNews().get(TARGET.upstream)).toEqual([row({ root: "a" })]);
  });

  it("fades for others after its life, unless it is seen again", () => {
    const both = [saw("a", 300), saw("b", 300)];
    expect(testimonyOf(both, "c", TEMPLATE_LIFE_MS - 1).believed).toMatchObject({ excessTokens: 300 });
    expect(testimonyOf(both, "c", TEMPLATE_LIFE_MS).believed).toBeUndefined();
    // What is still seen is reported again in the second half.
    expect(testimonyOf(both, "c", TEMPLATE_LIFE_MS / 2).stored).toBeUndefined();
    const again = [saw("c", 300, TEMPLATE_LIFE_MS / 2), saw("d", 290, TEMPLATE_LIFE_MS / 2)];
    expect(testimonyOf([...both, ...again], "e", TEMPLATE_LIFE_MS).believed).toMatchObject({ excessTokens: 290 });
  });

  it("takes a bounded place, and drops no report that decides what others believe", () => {
    let witnesses: Witness[] = [];
    for (let at = 0; at < 50; at++) {
      witnesses = withReport(witnesses, `r${at}`, { leastTokens: 20 + (at % 7), excessTokens: 600 - at }, at);
      expect(witnesses.length).toBeLessThanOrEqual(TEMPLATE_WITNESSES_MAX);
    }
    expect(testimonyOf(witnesses, "x", 50).believed).toMatchObject({ excessTokens: 599, leastTokens: 20 });
  });

  it("leaves room for the models of other trees", () => {
    const store = new Store();
    for (let at = 0; at < 300; at++) store.report("hostile", row({ model: `made-up-${at}` }));
    expect(store.rows).toHaveLength(TEMPLATES_PER_TREE_MAX + 1);
    store.report("a", row({}));
    store.report("b", row({}));
    expect(settledIn(store.run("c"))).toBe(390);
  });
});

describe("teaching", () => {
  const facts = fc.record({
    leastTokens: fc.integer({ min: 1, max: 200_000 }),
    excessTokens: fc.integer({ min: -200_000, max: 100_000 }),
    textRatio: fc.option(fc.double({ min: 0.4, max: 1_000, noNaN: true }), { nil: undefined }),
  });

  it(
    "one hostile tree changes nothing for 100 others, whatever it reports, before and after they have learned",
    { tags: ["slow"] },
    () => {
      const ways = (store: Store) =>
        Array.from({ length: 100 }, (_, at) => {
          const templates = store.run(`honest-${at}`);
          return [
            templates.overheadOf(TARGET, makeFacts({}), 0),
            templates.overheadOf({ ...TARGET, model: "unseen" }, makeFacts({}), 0),
            templates.textRatioOf(TARGET),
          ];
        });
      fc.assert(
        fc.property(fc.array(facts, { minLength: 1, maxLength: 20 }), fc.boolean(), (lies, haveLearned) => {
          const [quiet, taught] = [new Store(), new Store()];
          // Three agree, so that no honest report stands alone.
          for (const store of haveLearned ? [quiet, taught] : []) {
            for (const root of ["x", "y", "z"]) store.report(root, row({ textRatio: 0.5 }));
          }
          for (const { textRatio, ...lie } of lies) {
            taught.report("hostile", row({ ...lie, ...(textRatio === undefined ? {} : { textRatio }) }));
          }
          expect(ways(taught)).toEqual(ways(quiet));
        }),
        { numRuns: 200 },
      );
    },
  );
});

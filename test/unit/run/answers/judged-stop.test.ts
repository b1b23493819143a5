/** When the judge of an early stop is asked, with which answers, and what counts as its consent. */
import { describe, expect, it } from "vitest";
import { JudgedStop, saysEnough, type JudgeRule } from "../../../../src/run/answers/judged-stop.ts";
import { STOP_JUDGEMENTS_MAX } from "../../../../src/limits.ts";

const RULE: JudgeRule = {
  kind: "judge",
  prompt: "Is the answer there?",
  model: null,
  maxTokens: null,
  charsMax: 2_000,
  every: 1,
  shadow: false,
};
const stopOf = (rule: Partial<JudgeRule> = {}, count = 1_000) => new JudgedStop({ ...RULE, ...rule }, count);
const add = (stop: JudgedStop, index: number, text = `text ${index}`) =>
  stop.completed({ index, id: null, completed: true, text });
const ask = (stop: JudgedStop, seq = 7) => stop.callOpened({ seq, id: `pg-${seq}`, answers: stop.answers });

describe("a judge", () => {
  it("is due after so many new answers, and not while it is asked", () => {
    const stop = stopOf({ every: 2 });
    expect(stop.isDue).toBe(false);
    add(stop, 0);
    expect(stop.isDue).toBe(false);
    add(stop, 1);
    expect(stop.isDue).toBe(true);
    ask(stop);
    add(stop, 2);
    add(stop, 3);
    expect([stop.isDue, stop.openCallSeq]).toEqual([false, 7]);
    stop.callEnded();
    expect([stop.isDue, stop.openCallSeq, stop.groups]).toEqual([true, null, ["pg-7"]]);
    ask(stop, 8);
    stop.callEnded();
    expect(stop.isDue).toBe(false);
  });

  it("is asked so often and no more", () => {
    const stop = stopOf({ charsMax: 100_000 });
    let asked = 0;
    for (let index = 0; index < STOP_JUDGEMENTS_MAX + 10; index++) {
      add(stop, index);
      if (!stop.isDue) continue;
      asked += 1;
      ask(stop, index);
      stop.callEnded();
    }
    expect(asked).toBe(STOP_JUDGEMENTS_MAX);
  });

  it("is shown the rule and each answer by its place, up to the characters of one call", () => {
    const stop = stopOf();
    for (let index = 0; index < 50; index++) add(stop, index, "x".repeat(5_000));
    expect(stop.prompt).toContain("# Rule\nIs the answer there?");
    expect(stop.prompt).toContain(`## Answer 1\n${"x".repeat(199)}…`);
    // 200 characters of each answer and its heading of 12: nine fit in 2,000.
    expect(stop.answers).toBe(9);
    expect(stop.prompt.length).toBeLessThan(2_000 + 500);
  });

  it("is not asked about answers that it is not shown", () => {
    const stop = stopOf();
    for (let index = 0; index < 9; index++) add(stop, index, "x".repeat(5_000));
    ask(stop);
    stop.callEnded();
    add(stop, 9, "x".repeat(5_000));
    expect(stop.isDue).toBe(false);
  });
});

describe("a verdict", () => {
  it.each([
    ['{"enough": true, "reason": "yes"}', true],
    ['```json\n{"enough": true, "reason": ""}\n```', true],
    ['{"enough": false, "reason": "no"}', false],
    ['{"enough": "true"}', false],
    ["true", false],
    ["", false],
    ["null", false],
  ])("%j", (text, enough) => {
    expect(saysEnough(text)).toBe(enough);
  });
});

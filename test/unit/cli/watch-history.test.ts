import { describe, expect, it } from "vitest";
import { parseEvent } from "../../../cli/watch/event.ts";
import { type HistoryStyle, historyOf } from "../../../cli/watch/history.ts";
import { fold } from "../../../cli/watch/model.ts";
import { newView } from "../../../cli/watch/view.ts";
import { GROUP, iso, RunLogWriter } from "../../support/run-log.ts";

function tell(lines: readonly string[], style: HistoryStyle): string[] {
  const view = newView();
  return lines.flatMap((line) => {
    const event = parseEvent(line);
    if (event === null) throw new Error(`no event: ${line}`);
    const told = historyOf(view, event, style);
    fold(view, event);
    return told;
  });
}

describe("historyOf a group", () => {
  const log = new RunLogWriter();
  log.opened();
  log.groupStarted(3);
  for (const index of [0, 1, 2]) log.started({ index });
  log.completed({ index: 2 }, { ms: 1_000 });
  log.completed({ index: 0 }, { ms: 2_000, tookMs: 2_000, code: "upstream_timeout", message: "no answer" });
  log.completed({ index: 1 }, { ms: 3_000, tookMs: 3_000 });
  log.groupCompleted({ completed: 2, failed: 1, cancelled: 0 }, { status: "partial" });
  const started = `⚡ Parallel Execution Started: 3 sub-agents in group ${GROUP}`;
  const completed = `✓ Parallel Execution Complete: ${GROUP} (1.23s) · 2 of 3 ok · $0.0012 · 6.4x`;

  it("tells a live terminal the calls in their order at the group's end", () => {
    expect(tell(log.lines, "live")).toEqual([
      started,
      "  #0 [██████████] ✗ upstream_timeout · 2.00s · sim/echo · no answer",
      "  #1 [██████████] ✓ 3.00s · sim/echo · $0.0004",
      "  #2 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      completed,
    ]);
  });

  it("tells plain output each call as it ends", () => {
    expect(tell(log.lines, "plain")).toEqual([
      started,
      `${GROUP} #2 ✓ 1.00s · sim/echo · $0.0004`,
      `${GROUP} #0 ✗ upstream_timeout · 2.00s · sim/echo · no answer`,
      `${GROUP} #1 ✓ 3.00s · sim/echo · $0.0004`,
      completed,
    ]);
  });

  it("lists the calls of 32, of 33 only the first ten failures", () => {
    const group = (count: number) => {
      const log = new RunLogWriter();
      log.groupStarted(count);
      for (let index = 0; index < count; index++)
        log.completed({ index }, { code: index < 12 ? "upstream_error" : "" });
      log.groupCompleted({ completed: count - 12, failed: 12, cancelled: 0 });
      return tell(log.lines, "live").slice(1, -1);
    };
    expect(group(32)).toHaveLength(32);
    const large = group(33);
    expect(large).toHaveLength(11);
    expect(large.slice(9)).toEqual(["   #9 [██████████] ✗ upstream_error · 1.00s · sim/echo", "  … 2 more failed"]);
  });

  it.each([
    ["failed", `✗ Parallel Execution Failed: ${GROUP} (1.23s) · 0 of 2 ok · $0.0012 · 6.4x`],
    ["cancelled", `✗ Parallel Execution Cancelled: ${GROUP} (1.23s) · 0 of 2 ok · $0.0012 · 6.4x`],
  ])("says that a group %s", (status, line) => {
    const log = new RunLogWriter();
    log.groupCompleted({ completed: 0, failed: 2, cancelled: 0 }, { status });
    expect(tell(log.lines, "live")).toEqual([line]);
  });

  it("says how many calls of a wider group run at once", () => {
    const log = new RunLogWriter();
    log.groupStarted(9);
    log.groupStarted(8);
    expect(tell(log.lines, "plain")).toEqual([
      `⚡ Parallel Execution Started: 9 sub-agents in group ${GROUP} (8 at once)`,
      `⚡ Parallel Execution Started: 8 sub-agents in group ${GROUP}`,
    ]);
  });
});

describe("historyOf other events", () => {
  function told(type: string, facts: Record<string, unknown>): string[] {
    const log = new RunLogWriter();
    log.add(type, facts);
    return tell(log.lines, "live");
  }

  it("gives a single call one line when it ends", () => {
    const log = new RunLogWriter();
    log.started({ call_id: "call_a" }, { group: null });
    log.ended({ call_id: "call_a" }, { group: null });
    log.completed({ call_id: "call_a" }, { group: null, ms: 810, tookMs: 810, attempts: 2 });
    expect(tell(log.lines, "live")).toEqual(["call_a ✓ 0.81s · sim/echo · $0.0004 · 2 attempts"]);
  });

  it("shows a call that never ran without a time", () => {
    const line = told("slot_completed", {
      ...{ index: null, call_id: "call_a", status: "cancelled", attempts: 0, hasError: true, code: "cancelled" },
      ...{ message: null, model: null, finish_reason: null, usage: null },
      timestamps: { llm_call_start: null, llm_call_end: null },
    });
    expect(line).toEqual(["call_a ✗ cancelled"]);
  });

  const call = { group: GROUP, index: 3, call_id: null };
  it.each([
    [
      "retry_scheduled",
      { ...call, attempt: 2, delay_ms: 800, code: "upstream_error" },
      `↻ ${GROUP} #3 attempt 2 in 0.80s, after upstream_error`,
    ],
    ["throttled", { upstream: "openai", retry_after_ms: 12_000 }, "! openai requested a delay of 12.00s"],
    [
      "throttled",
      { upstream: "openai", cause: "requests_per_minute", retry_after_ms: 12_000 },
      "! openai requested a delay of 12.00s",
    ],
    [
      "throttled",
      { upstream: "openai", cause: "invalid_key", retry_after_ms: 60_000 },
      "! openai refuses the gateway's key (invalid_key): calls wait until it works",
    ],
    [
      "budget_refused",
      { ...call, code: "budget_exhausted", dimension: "usd", limit: 0.1, spent: 0.0995, reserved: 0, needed: 0.002 },
      `✗ ${GROUP} #3 budget_exhausted: needs $0.0020 usd, $0.0995 of $0.1000 spent`,
    ],
    [
      "budget_refused",
      { ...call, code: "budget_exhausted", dimension: "calls", limit: 1_000, spent: 1_000, reserved: 0, needed: 1 },
      `✗ ${GROUP} #3 budget_exhausted: needs 1 calls, 1,000 of 1,000 spent`,
    ],
    [
      "overrun",
      { ...call, upstream: "sim", model: "echo", dimensions: ["usd"], reserved: { usd: 0.01 }, charged: { usd: 0.02 } },
      `! overrun: ${GROUP} #3 sim/echo charged $0.0200 for $0.0100 reserved`,
    ],
    ["tool_called", { tool: "search", ok: true, code: null, latency_ms: 1_234 }, "⚙ tool search ✓ (1.23s)"],
    [
      "tool_called",
      { tool: "search", ok: false, code: "upstream_timeout", latency_ms: 60_000 },
      "⚙ tool search ✗ upstream_timeout (1m00s)",
    ],
    [
      "slots_cancelled",
      { group: GROUP, count: 12, status: "failed", code: "budget_exhausted", message: "USD budget exceeded" },
      `${GROUP} 12 calls ✗ budget_exhausted · USD budget exceeded`,
    ],
    [
      "slot_skipped",
      { ...call, code: "condition_not_met", message: "a condition does not hold" },
      `${GROUP} #3 – skipped: condition_not_met · a condition does not hold`,
    ],
    [
      "escalated",
      { ...call, tier: "P0", code: "upstream_error", message: "no" },
      `‼ P0 failed: ${GROUP} #3 ✗ upstream_error · no`,
    ],
    [
      "escalated",
      { ...call, index: null, tier: null, code: "vote_undecided", message: "the votes decide nothing" },
      `‼ ${GROUP} ✗ vote_undecided · the votes decide nothing`,
    ],
    ["child_opened", { child_run_id: "run_2", reserved: { usd: 0.1 } }, "+ child run_2 opened with $0.1000"],
    ["child_closed", { child_run_id: "run_2", spent: { usd: 0.04 } }, "- child run_2 ended, $0.0400 spent"],
    ["credit_lost", { charged: { usd: 0.03 } }, "! credit lost: $0.0300 charged for calls that were not reported"],
    ["run_closed", { status: "expired" }, "■ run expired"],
    ["code_generated", { step: 3, code: "print(1)\nprint(2)" }, "› code_generated step 3: print(1) print(2)"],
    ["execution_result", { hasError: true, output: "" }, "✗ execution_result"],
  ])("gives %s one short line", (type, facts, line) => {
    expect(told(type, facts)).toEqual([line]);
  });

  it("says that events are missing", () => {
    const log = new RunLogWriter();
    for (let count = 0; count < 4; count++) log.opened();
    expect(tell(log.lines.slice(3), "live")).toEqual(["! 3 events before number 4 did not arrive"]);
  });

  it("goes on where an event of a known name is not as expected", () => {
    const [line] = told("throttled", { upstream: "openai" });
    expect(line).toMatch(/^\? throttled \(number 1\) has an unexpected format: retry_after_ms: /);
  });

  it("prints no control character of anything that the wire says", () => {
    const evil = "\u001b[2J\u001b]0;x\u0007\u009b31m\r\nE\u202e";
    const log = new RunLogWriter();
    log.opened(evil);
    log.add("group_started", { group: evil, count: 1, effective_parallel: 1 });
    log.started({ call_id: evil }, { group: evil });
    log.completed({ call_id: evil }, { group: evil, code: evil, message: evil });
    log.add("throttled", { upstream: evil, cause: evil, retry_after_ms: 1 });
    log.add(evil, { step: evil, output: evil });
    log.add("run_closed", { status: evil });
    const lines = [...tell(log.lines, "plain"), ...tell(log.lines, "live")];
    expect(lines.length).toBeGreaterThan(8);
    expect(lines.join("")).not.toMatch(/\p{C}/u);
  });
});

describe("parseEvent", () => {
  const line = { seq: 1, ts: iso(0), run_id: "run_1", parallel_group_id: null, event_type: "final_result" };

  it.each([
    ["no JSON", "<html>"],
    ["no object", "17"],
    ["no number", JSON.stringify({ ...line, seq: undefined })],
    ["a number below 1", JSON.stringify({ ...line, seq: 0 })],
    ["a time that is none", JSON.stringify({ ...line, ts: "yesterday" })],
  ])("takes %s for no event", (_, text) => {
    expect(parseEvent(text)).toBeNull();
  });

  it("takes a client's event whatever its fields hold", () => {
    const event = parseEvent(JSON.stringify({ ...line, step: { a: 1 }, output: [1], code: "x", hasError: true }));
    expect(event).toMatchObject({
      event_type: "client",
      name: "final_result",
      step: null,
      hasError: true,
      excerpt: "x",
    });
  });
});

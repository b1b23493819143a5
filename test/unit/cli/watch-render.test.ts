import { describe, expect, it } from "vitest";
import { parseEvent } from "../../../cli/watch/event.ts";
import { fold } from "../../../cli/watch/model.ts";
import { render, shareRows } from "../../../cli/watch/render.ts";
import { widthOf } from "../../../cli/watch/text.ts";
import { newView, type View } from "../../../cli/watch/view.ts";
import { at, GROUP, RunLogWriter } from "../../support/run-log.ts";

function viewOf({ lines }: RunLogWriter): View {
  const view = newView();
  for (const line of lines) {
    const event = parseEvent(line);
    if (event === null) throw new Error(`no event: ${line}`);
    fold(view, event);
  }
  return view;
}

const frame = { runId: "run_1", columns: 100, rows: 24, nowMs: at(3_000), connected: true };

describe("render", () => {
  it("shows each call of a group in its place with its bar, and the run below", () => {
    const log = new RunLogWriter();
    log.opened();
    log.groupStarted(5);
    for (const index of [0, 1, 2, 3]) log.started({ index });
    log.ended({ index: 1 }, { ms: 2_000, latencyMs: 2_000 });
    log.completed({ index: 1 }, { ms: 2_000, tookMs: 2_000 });
    log.completed({ index: 0 }, { ms: 2_500, tookMs: 2_500, attempts: 3, code: "upstream_error", message: "boom" });
    log.ended({ index: 2 }, { ms: 2_800, code: "upstream_error" });
    log.add("retry_scheduled", {
      ...{ ms: 2_800, group: GROUP, index: 2, call_id: null },
      ...{ attempt: 2, delay_ms: 700, code: "upstream_error" },
    });
    log.ended({ index: 3 }, { ms: 2_000, code: "upstream_error" });
    log.started({ index: 3 }, { ms: 2_200, attempt: 2 });
    expect(render(viewOf(log), frame)).toEqual([
      `${GROUP} [████······] 2/5 · 2 running · 1 queued · 1 ok · 1 failed`,
      "  #0 [██████████] ✗ upstream_error · 2.50s · sim/echo · 3 attempts · boom",
      "  #1 [██████████] ✓ 2.00s · sim/echo · $0.0004",
      "  #2 [··········] retry in 0.5s · sim/echo · attempt 2",
      "  #3 [████······] running 0.8s · sim/echo · attempt 2",
      "  #4 [··········] queued",
      'run_1 "first" · open · $0.0004 of $0.5000 spent · 1 in flight · 1 ok · 1 failed',
    ]);
  });

  it("shows the step of a call in its line, while it runs and when it has ended", () => {
    const log = new RunLogWriter();
    log.groupStarted(3);
    log.started({ index: 0, step: 3, steps: 20 });
    log.started({ index: 1, step: 3 });
    log.completed({ index: 1, step: 3 }, { ms: 1_000 });
    log.completed({ index: 2, step: 9, steps: 20 }, { ms: 1_000, code: "upstream_error" });
    expect(render(viewOf(log), frame).slice(1, 4)).toEqual([
      "  #0 [██████····] running 3.0s · Step 3/20 · sim/echo",
      "  #1 [██████████] ✓ Step 3 · 1.00s · sim/echo · $0.0004",
      "  #2 [██████████] ✗ upstream_error · Step 9/20 · 1.00s · sim/echo",
    ]);
  });

  it("shows how deep the run is once a step of it is known", () => {
    const lineAt = (step: string | null) => render(newView(), { ...frame, where: { depth: 1, step } });
    expect(lineAt("3/20")).toEqual(["run_1 · Depth 1 · Step 3/20 · open · $0 spent · 0 in flight"]);
    expect(lineAt(null)).toEqual(["run_1 · open · $0 spent · 0 in flight"]);
  });

  it("never fills the bar of a call that runs, nor shows a time below zero", () => {
    const log = new RunLogWriter();
    log.groupStarted(2);
    log.started({ index: 0 }, { ms: -3_600_000 });
    log.started({ index: 1 }, { ms: 9_000 });
    const [, long, future] = render(viewOf(log), frame);
    expect(long).toBe("  #0 [█████████·] running 1h00m · sim/echo");
    expect(future).toBe("  #1 [··········] running 0.0s · sim/echo");
  });

  it("tells calls that ended without having run from queued ones", () => {
    const log = new RunLogWriter();
    log.groupStarted(2);
    log.completed({ index: 0 }, { ms: 1_000 });
    log.add("slots_cancelled", { group: GROUP, count: 1, status: "cancelled", code: "cancelled", message: null });
    expect(render(viewOf(log), frame).slice(0, 3)).toEqual([
      `${GROUP} [██████████] 2/2 · 1 ok · 1 cancelled`,
      "  #0 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      "  #1 [··········] ended without a call",
    ]);
  });

  it("shows at once which calls of a graph do not start", () => {
    const log = new RunLogWriter();
    log.groupStarted(3);
    log.completed({ index: 0 }, { ms: 1_000 });
    log.add("slot_skipped", { group: GROUP, index: 2, call_id: null, code: "condition_not_met", message: "no" });
    expect(render(viewOf(log), frame)).toEqual([
      `${GROUP} [██████····] 2/3 · 1 queued · 1 ok · 1 skipped`,
      "  #0 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      "  #1 [··········] queued",
      "  #2 [··········] skipped: condition_not_met",
      "run_1 · open · $0 spent · 0 in flight · 1 ok · 1 skipped",
    ]);
  });

  it("moves a single call into the group that it turns out to belong to", () => {
    const log = new RunLogWriter();
    log.started({ call_id: "call_a" }, { group: null });
    log.groupStarted(2);
    log.started({ call_id: "call_b" });
    log.started({ call_id: "call_c" });
    log.completed({ call_id: "call_a" }, { ms: 2_000, tookMs: 2_000 });
    expect(render(viewOf(log), frame)).toEqual([
      `${GROUP} [███·······] 1/3 · 2 running · 1 ok`,
      "  call_a [██████████] ✓ 2.00s · sim/echo · $0.0004",
      "  call_b [██████····] running 3.0s · sim/echo",
      "  call_c [██████····] running 3.0s · sim/echo",
      "run_1 · open · $0 spent · 2 in flight · 1 ok",
    ]);
  });

  it("adds what lost credit is charged", () => {
    const log = new RunLogWriter();
    log.ended({ index: 0 });
    log.add("credit_lost", { charged: { usd: 0.25 }, estimated: true });
    expect(render(viewOf(log), frame)).toEqual(["run_1 · open · $0.2504 spent · 0 in flight"]);
  });

  it("takes a call to run while a slow attempt goes on beside one that failed", () => {
    const log = new RunLogWriter();
    log.groupStarted(1);
    log.started({ index: 0 });
    log.started({ index: 0 }, { ms: 1_000, attempt: 2 });
    log.ended({ index: 0 }, { ms: 2_000, attempt: 2, code: "upstream_error" });
    const lines = render(viewOf(log), frame);
    expect(lines[1]).toBe("  #0 [██████····] running 3.0s · sim/echo");
    expect(lines[2]).toContain("1 in flight");
  });

  it("adds what ended child runs spent, and says how the run ended and that nothing arrives", () => {
    const log = new RunLogWriter();
    log.opened(null, null);
    log.add("child_closed", { child_run_id: "run_2", spent: { usd: 0.25 } });
    log.add("run_closed", { status: "cancelled" });
    const lines = render(viewOf(log), { ...frame, connected: false });
    expect(lines).toEqual(["run_1 · cancelled · $0.2500 spent · 0 in flight · not connected"]);
  });

  it("cuts every line to the terminal's width", () => {
    const log = new RunLogWriter();
    log.opened("模".repeat(80));
    log.groupStarted(1);
    log.completed({ index: 0 }, { code: "upstream_error", message: "m".repeat(200) });
    const lines = render(viewOf(log), { ...frame, columns: 40 });
    expect(lines.map(widthOf).filter((width) => width > 40)).toEqual([]);
    expect(lines[1]).toBe("  #0 [██████████] ✗ upstream_error · 1.…");
  });
});

describe("render of more than fits", () => {
  function large(): View {
    const log = new RunLogWriter();
    log.groupStarted(10_000);
    for (let index = 0; index < 100; index++) log.completed({ index }, { ms: index });
    for (let index = 100; index < 612; index++) log.started({ index }, { ms: 1_000 });
    return viewOf(log);
  }

  it("fits a group of 10,000 into 24 rows: running calls, the last that ended, and the sum of the rest", () => {
    const lines = render(large(), frame);
    expect(lines).toHaveLength(23);
    expect(lines[0]).toBe(`${GROUP} [··········] 100/10,000 · 512 running · 9,388 queued · 100 ok`);
    expect(lines[1]).toBe("    #95 [██████████] ✓ 1.00s · sim/echo · $0.0004");
    expect(lines[6]).toBe("   #100 [████······] running 2.0s · sim/echo");
    expect(lines[20]).toBe("   #114 [████······] running 2.0s · sim/echo");
    expect(lines[21]).toBe("  … 9,388 more queued, 497 more running, 95 ok");
  });

  it("sums up only what it does not show", () => {
    const log = new RunLogWriter();
    log.groupStarted(1_975);
    for (let index = 0; index < 40; index++) log.completed({ index });
    for (let index = 40; index < 45; index++) log.started({ index });
    expect(render(viewOf(log), { ...frame, rows: 9 }).slice(1)).toEqual([
      "    #39 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      ...[40, 41, 42, 43].map((index) => `    #${index} [██████····] running 3.0s · sim/echo`),
      "  … 1,930 more queued, 1 more running, 39 ok",
      "run_1 · open · $0 spent · 5 in flight · 40 ok",
    ]);
  });

  it.each([1, 2, 3, 4, 5, 10, 100])("has no more lines than a terminal of %i rows", (rows) => {
    const log = new RunLogWriter();
    for (let group = 0; group < 30; group++) {
      log.groupStarted(group, 0, `pg-${group}`);
      for (let index = 0; index < group; index += 3) log.started({ index }, { group: `pg-${group}` });
    }
    const lines = render(viewOf(log), { ...frame, rows });
    expect(lines.length).toBeLessThanOrEqual(Math.max(1, rows - 1));
    expect(lines.at(-1)).toBe("run_1 · open · $0 spent · 155 in flight");
  });

  it("names the groups it has no row for", () => {
    const log = new RunLogWriter();
    for (const id of ["pg-1", "pg-2", "pg-3", "pg-4"]) log.groupStarted(8, 0, id);
    const lines = render(viewOf(log), { ...frame, rows: 5 });
    expect(lines.slice(0, 3)).toEqual([
      "pg-1 [··········] 0/8 · 8 queued",
      "pg-2 [··········] 0/8 · 8 queued",
      "… 2 more groups",
    ]);
  });

  it("keeps the latest 256 ended calls of a group and forgets the group when it has ended", () => {
    const log = new RunLogWriter();
    log.groupStarted(300);
    for (let index = 0; index < 300; index++) log.completed({ index });
    const group = viewOf(log).groups.get(GROUP);
    expect([...(group?.ended.keys() ?? [])].at(0)).toBe("#44");
    expect(group?.ended.size).toBe(256);
    log.groupCompleted({ completed: 300, failed: 0, cancelled: 0 });
    expect(viewOf(log).groups.size).toBe(0);
  });
});

describe("shareRows", () => {
  it("gives each what it wants where there is room", () => {
    expect(shareRows([3, 5], 8)).toEqual([3, 5]);
  });

  it("gives large ones equal parts of what small ones leave", () => {
    expect(shareRows([100, 3, 50], 23)).toEqual([10, 3, 10]);
  });
});

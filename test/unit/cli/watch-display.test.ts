import { describe, expect, it } from "vitest";
import { Display, type DisplayOptions } from "../../../cli/watch/display.ts";
import type { WatchEvent } from "../../../cli/watch/event.ts";
import { parseEvent } from "../../../cli/watch/event.ts";
import { at, GROUP, RunLogWriter } from "../../support/run-log.ts";

/** What a terminal shows that obeys the codes of `Screen`, is wide enough for every line, and scrolls for ever. */
function terminal() {
  const rows: string[] = [""];
  let row = 0;
  let cursor = true;
  return {
    write(text: string): void {
      for (const [piece] of text.replaceAll("\u001b", "␛").matchAll(/␛\[[?\d]*[A-Za-z]|\n|\r|[^␛\n\r]+/g)) {
        const up = /^␛\[(\d+)A$/.exec(piece)?.[1];
        if (up !== undefined) row -= Number(up);
        else if (piece === "␛[J") rows.splice(row, Infinity, "");
        else if (piece.startsWith("␛[?25")) cursor = piece.endsWith("h");
        else if (piece === "\n") rows[++row] ??= "";
        else if (piece !== "\r") rows[row] = piece;
      }
    },
    lines: () => rows.slice(0, -1),
    cursor: () => cursor,
  };
}

function events({ lines }: RunLogWriter, from = 0): WatchEvent[] {
  return lines.slice(from).map((line) => {
    const event = parseEvent(line);
    if (event === null) throw new Error(`no event: ${line}`);
    return event;
  });
}

function display(options: Partial<DisplayOptions> = {}): Display {
  const size = () => ({ columns: 80, rows: 24 });
  return new Display({ runId: "run_1", style: "live", redraws: true, now: () => at(1_000), size, ...options });
}

describe("Display on a terminal", () => {
  it("redraws the calls in place below what has ended", () => {
    const screen = terminal();
    const shown = display();
    const log = new RunLogWriter();
    log.opened();
    log.groupStarted(2);
    log.started({ index: 0 });
    shown.connected();
    shown.events(events(log));
    screen.write(shown.frame());
    const started = `⚡ Parallel Execution Started: 2 sub-agents in group ${GROUP}`;
    expect(screen.lines()).toEqual([
      started,
      `${GROUP} [··········] 0/2 · 1 running · 1 queued`,
      "  #0 [██········] running 1.0s · sim/echo",
      "  #1 [··········] queued",
      'run_1 "first" · open · $0 of $0.5000 spent · 1 in flight',
    ]);
    expect(screen.cursor()).toBe(false);

    const told = log.lines.length;
    log.completed({ index: 1 }, { ms: 1_000 });
    log.completed({ index: 0 }, { ms: 1_000 });
    log.groupCompleted({ completed: 2, failed: 0, cancelled: 0 });
    log.add("run_closed", { status: "closed" });
    shown.events(events(log, told));
    screen.write(shown.close());
    expect(screen.lines()).toEqual([
      started,
      "  #0 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      "  #1 [██████████] ✓ 1.00s · sim/echo · $0.0004",
      `✓ Parallel Execution Complete: ${GROUP} (1.23s) · 2 of 2 ok · $0.0012 · 6.4x`,
      "■ run closed",
      'run_1 "first" · closed · $0 of $0.5000 spent · 0 in flight · 2 ok',
    ]);
    expect(screen.cursor()).toBe(true);
  });

  it("writes nothing where nothing has changed", () => {
    const shown = display();
    shown.connected();
    expect(shown.frame()).not.toBe("");
    expect(shown.frame()).toBe("");
  });

  it("draws nothing of a run that was not found, and leaves the cursor as it is", () => {
    const shown = display();
    expect(shown.frame()).toBe("");
    expect(shown.close()).toBe("");
  });

  it("goes up over the rows into which a narrowed terminal has wrapped its lines", () => {
    let columns = 80;
    const shown = display({ size: () => ({ columns, rows: 24 }) });
    const log = new RunLogWriter();
    log.opened("x".repeat(30));
    shown.events(events(log));
    expect(shown.frame()).not.toContain("A\r");
    columns = 40;
    expect(shown.frame()).toContain("\u001b[2A\r");
  });

  it("gives a line that scrolls by two rows at most", () => {
    const screen = terminal();
    const shown = display({ size: () => ({ columns: 20, rows: 24 }) });
    const log = new RunLogWriter();
    log.add("final_result", { output: "y".repeat(100) });
    shown.events(events(log));
    screen.write(shown.frame());
    expect(screen.lines()[0]).toBe(`› final_result: ${"y".repeat(23)}…`);
  });

  it("says once that the connection is lost, and how long it was", () => {
    let nowMs = at(0);
    const screen = terminal();
    const shown = display({ now: () => nowMs });
    shown.connected();
    shown.lost("Lost it.", 200);
    shown.lost("Lost it.", 400);
    screen.write(shown.frame());
    expect(screen.lines()).toEqual([
      "! Lost it. Retrying in 0.2s.",
      "run_1 · open · $0 spent · 0 in flight · not connected",
    ]);
    nowMs = at(3_200);
    shown.connected();
    screen.write(shown.frame());
    expect(screen.lines().slice(1)).toEqual(["! Reconnected after 3.2s.", "run_1 · open · $0 spent · 0 in flight"]);
  });
});

describe("Display as plain lines", () => {
  it("adds how things stand at the end, without an escape code", () => {
    const shown = display({ style: "plain", redraws: false });
    const log = new RunLogWriter();
    log.opened();
    log.groupStarted(2);
    log.completed({ index: 0 }, { ms: 1_000 });
    shown.events(events(log));
    const started = `⚡ Parallel Execution Started: 2 sub-agents in group ${GROUP}\n`;
    expect(shown.frame()).toBe(`${started}${GROUP} #0 ✓ 1.00s · sim/echo · $0.0004\n`);
    expect(shown.close()).toBe(
      [
        `${GROUP} [█████·····] 1/2 · 1 queued · 1 ok`,
        "  #0 [██████████] ✓ 1.00s · sim/echo · $0.0004",
        "  #1 [··········] queued",
        'run_1 "first" · open · $0 of $0.5000 spent · 0 in flight · 1 ok',
        "",
      ].join("\n"),
    );
  });
});

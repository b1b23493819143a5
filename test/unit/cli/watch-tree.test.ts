import { describe, expect, it } from "vitest";
import type { Credential } from "../../../cli/credential.ts";
import { Display } from "../../../cli/watch/display.ts";
import { parseEvent, type WatchEvent } from "../../../cli/watch/event.ts";
import type { Fetch } from "../../../cli/gateway/requests.ts";
import { renderTree, type TreeRun } from "../../../cli/watch/render.ts";
import { FOLLOWED_MAX, followTree, readTree, type RunPlace } from "../../../cli/watch/tree.ts";
import { newView } from "../../../cli/watch/view.ts";
import { at, GROUP, RunLogWriter } from "../../support/run-log.ts";

const CREDENTIAL: Credential = { value: "token", name: "FANOUT_TOKEN", from: "FANOUT_TOKEN", isRunToken: true };
const SOURCE = { gateway: { url: "http://gateway.test", credential: CREDENTIAL }, runId: "run_1" };

/** A log that opens these runs, and ends unless it `stays`. */
function log(children: readonly string[] = [], { stays = false } = {}): string[] {
  const writer = new RunLogWriter();
  writer.opened();
  for (const child of children) writer.add("child_opened", { child_run_id: child, reserved: { usd: 0.1 } });
  if (!stays) writer.add("run_closed", { status: "closed" });
  return writer.lines;
}

/** A line that no gateway sends. */
const NO_EVENT = "{}";

type Logs = Readonly<Record<string, readonly string[]>>;

/** A gateway with these logs. The stream of a log that does not end stays open until its reader leaves. */
function gatewayOf(logs: Logs): { fetch: Fetch; asked: string[] } {
  const asked: string[] = [];
  const fetch: Fetch = async (url, { signal }) => {
    const [, id = "", what] = /\/runs\/([^/]+)\/(events|log)$/.exec(url) ?? [];
    asked.push(id);
    const lines = logs[id];
    if (lines === undefined) return Response.json({ error: { message: `run ${id} not found` } }, { status: 404 });
    if (what === "log") {
      const text = lines.map((line) => `${line}\n`).join("");
      return new Response(text, { headers: { "content-type": "application/x-ndjson" } });
    }
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        const send = (some: readonly string[]): void =>
          stream.enqueue(new TextEncoder().encode(some.map((line) => `data: ${line}\n\n`).join("")));
        send(lines.filter((line) => line !== NO_EVENT));
        if (lines.includes(NO_EVENT)) send([NO_EVENT]);
        else if (lines.some((line) => line.includes('"run_closed"'))) stream.close();
        else signal.addEventListener("abort", () => stream.error(signal.reason));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  return { fetch, asked };
}

/** Follows the tree of run_1; `told`: each run that has told its events, and each that was left, in that order. */
async function followed(logs: Logs, { below = true } = {}) {
  const { fetch, asked } = gatewayOf(logs);
  const told: string[] = [];
  let [open, mostOpen] = [0, 0];
  const listener = {
    connected: ({ level }: RunPlace) => void (mostOpen = Math.max(mostOpen, (open += level === 0 ? 0 : 1))),
    lost: () => {},
    left: ({ id }: RunPlace, problem: string | null) => {
      open -= problem === null ? 1 : 0;
      told.push(problem === null ? `left ${id}` : problem);
    },
    events: ({ id, parent, level }: RunPlace, events: WatchEvent[]) =>
      void told.push(`${id} of ${parent} at ${level}: ${events.length}`),
  };
  const sleep = async () => {};
  const { signal } = new AbortController();
  const ending = await followTree(SOURCE, { fetch, sleep }, { below, listener, signal });
  return { ending, told, asked, mostOpen };
}

describe("followTree", () => {
  it("follows a run below once its parent's log has opened it, and ends when all have ended", async () => {
    const { ending, told } = await followed({ run_1: log(["run_2"]), run_2: log(["run_3"]), run_3: log() });
    expect(ending).toEqual({ ended: "run" });
    const [first, second, third] = ["run_1 of null at 0: 3", "run_2 of run_1 at 1: 3", "run_3 of run_2 at 2: 2"];
    expect(told.toSorted()).toEqual(["left run_2", "left run_3", first, second, third].toSorted());
    expect([told.indexOf(first ?? ""), told.indexOf(second ?? "")]).toEqual([0, 1]);
  });

  it("follows nobody below where that is not wanted", async () => {
    const { told } = await followed({ run_1: log(["run_2"]), run_2: log() }, { below: false });
    expect(told).toEqual(["run_1 of null at 0: 3"]);
  });

  it("leaves out a child that has ended when its opening is read", async () => {
    const writer = new RunLogWriter();
    writer.add("child_opened", { child_run_id: "run_2", reserved: { usd: 0.1 } });
    writer.add("child_closed", { child_run_id: "run_2", spent: { usd: 0.1 } });
    writer.add("run_closed", { status: "closed" });
    const { asked } = await followed({ run_1: writer.lines, run_2: log() });
    expect(asked).toEqual(["run_1"]);
  });

  it(`follows ${FOLLOWED_MAX} at once, and each other one when one of these has ended`, async () => {
    const children = Array.from({ length: FOLLOWED_MAX + 9 }, (_, place) => `run_c${place}`);
    const logs = Object.fromEntries(children.map((child) => [child, log()]));
    const { ending, told, mostOpen } = await followed({ run_1: log(children), ...logs });
    expect(ending).toEqual({ ended: "run" });
    expect(told.filter((line) => line.startsWith("left "))).toHaveLength(children.length);
    expect(mostOpen).toBe(FOLLOWED_MAX);
  });

  it("goes on without a child that it may not read", async () => {
    const { ending, told } = await followed({ run_1: log(["run_2", "run_3"]), run_3: log() });
    expect(ending).toEqual({ ended: "run" });
    expect(told).toContain("left run_3");
    expect(told).toContainEqual(expect.stringMatching(/^No such run .*\(run run_2 not found\)\.$/));
  });

  it("leaves none when the reader ends: they are shown as they were", async () => {
    const { fetch } = gatewayOf({ run_1: log(["run_2"], { stays: true }), run_2: log([], { stays: true }) });
    const stop = new AbortController();
    const left: string[] = [];
    const listener = {
      ...{ connected: () => {}, lost: () => {} },
      left: ({ id }: RunPlace) => void left.push(id),
      events: ({ level }: RunPlace) => void (level === 1 && stop.abort()),
    };
    const sleep = async () => {};
    const { signal } = stop;
    expect(await followTree(SOURCE, { fetch, sleep }, { below: true, listener, signal })).toEqual({ ended: "stopped" });
    expect(left).toEqual([]);
  });

  it("leaves the runs below when the first has a problem", async () => {
    const first = [...log(["run_2"], { stays: true }), NO_EVENT];
    const { ending, told } = await followed({ run_1: first, run_2: log([], { stays: true }) });
    expect(ending).toEqual({ ended: "problem", message: expect.stringContaining("does not belong to the log of run") });
    expect(told.at(-1)).toBe("left run_2");
  });
});

describe("readTree", () => {
  it("reads the open runs below, and leaves out one that is gone", async () => {
    const { fetch, asked } = gatewayOf({ run_1: log(["run_2", "run_3"], { stays: true }), run_3: log() });
    const read = new Set<string>();
    const { signal } = new AbortController();
    const onEvents = ({ id, level }: RunPlace) => void read.add(`${id} ${level}`);
    expect(await readTree(SOURCE, { below: true, fetch, signal, onEvents })).toBeNull();
    expect([asked, [...read]]).toEqual([
      ["run_1", "run_2", "run_3"],
      ["run_1 0", "run_3 1"],
    ]);
  });
});

/** The events of a writer's log, so deep in the tree. */
function eventsOf({ lines }: RunLogWriter, depth: number): WatchEvent[] {
  return lines.map((line) => {
    const event = parseEvent(line.replace('"depth":0', `"depth":${depth}`));
    if (event === null) throw new Error(`no event: ${line}`);
    return event;
  });
}

const CHILD: RunPlace = { id: "run_2", parent: "run_1", level: 1 };

describe("Display of a tree", () => {
  const size = () => ({ columns: 100, rows: 24 });
  const shown = () =>
    new Display({ runId: "run_1", style: "plain", redraws: false, tree: true, now: () => at(2_000), size });

  it("nests runs below with their depth and step, and names them in their lines", () => {
    const display = shown();
    const root = new RunLogWriter();
    root.opened();
    root.add("child_opened", { child_run_id: "run_2", reserved: { usd: 0.1 } });
    display.events(eventsOf(root, 1));
    const child = new RunLogWriter();
    child.opened("part", 0.1);
    child.add("code_generated", { step: 3, output: "x" });
    child.groupStarted(1);
    child.started({ index: 0 });
    display.events(eventsOf(child, 2), CHILD);
    expect(display.close().split("\n")).toEqual([
      "+ child run_2 opened with $0.1000",
      "  run_2 › code_generated step 3: x",
      `  run_2 ⚡ Parallel Execution Started: 1 sub-agent in group ${GROUP}`,
      'run_1 "first" · Depth 1 · open · $0 of $0.5000 spent · 0 in flight',
      '  run_2 "part" · Depth 2 · Step 3 · open · $0 of $0.1000 spent · 1 in flight',
      `  ${GROUP} [··········] 0/1 · 1 running`,
      "    #0 [████······] running 2.0s · sim/echo",
      "",
    ]);
  });

  it("shows the step of the call that a run below began last, one that was replayed among them", () => {
    const display = shown();
    const child = new RunLogWriter();
    child.opened("part", 0.1);
    child.started({ call_id: "a", step: 3, steps: 20 }, { group: null });
    child.started({ call_id: "b", step: 4, steps: 20 }, { group: null });
    child.completed({ call_id: "a", step: 3, steps: 20 }, { group: null });
    const run = { id: "run_2", parent: "run_1", level: 1 };
    display.events(eventsOf(child, 1), run);
    const lines = () => display.close().split("\n");
    expect(lines()).toContain('  run_2 "part" · Depth 1 · Step 4/20 · open · $0 of $0.1000 spent · 1 in flight · 1 ok');
    child.completed({ call_id: "c", step: 5, steps: 20 }, { group: null, attempts: 0 });
    display.events(eventsOf(child, 1).slice(-1), run);
    expect(lines()).toContain('  run_2 "part" · Depth 1 · Step 5/20 · open · $0 of $0.1000 spent · 1 in flight · 2 ok');
  });

  it("shortens the long id of a run below", () => {
    const display = shown();
    const child = new RunLogWriter();
    child.opened("part");
    child.add("final_result", { output: "x" });
    display.events(eventsOf(child, 1), { id: `run_${"0123456789abcdef".repeat(4)}`, parent: "run_1", level: 1 });
    expect(display.close().split("\n")).toEqual([
      "  run_01234567… › final_result: x",
      "run_1 · Depth 0 · open · $0 spent · 0 in flight",
      '  run_01234567… "part" · Depth 1 · open · $0 of $0.5000 spent · 0 in flight',
      "",
    ]);
  });

  it("shows a run that has ended only as the first, and says why it left another one", () => {
    const display = shown();
    const ended = new RunLogWriter();
    ended.opened();
    ended.add("run_closed", { status: "closed" });
    display.events(eventsOf(ended, 0));
    display.events(eventsOf(ended, 1), CHILD);
    display.events([], { id: "run_3", parent: "run_1", level: 1 });
    display.left({ id: "run_3", parent: "run_1", level: 1 }, "No such run.");
    expect(display.close().split("\n")).toEqual([
      ...["■ run closed", "  run_2 ■ run closed", "  run_3 ! No such run."],
      ...['run_1 "first" · Depth 0 · closed · $0 of $0.5000 spent · 0 in flight', ""],
    ]);
  });
});

describe("renderTree", () => {
  const runs = Array.from({ length: 9 }, (_, place): TreeRun => {
    const view = newView();
    const group = `pg-${place}`;
    view.add(1, { atMs: at(0), group, event: "group_started", count: 5 });
    return { id: `run_${place}`, level: place % 3, depth: place % 3, step: null, view, connected: true };
  });

  it.each([1, 2, 3, 5, 9, 10, 11, 30, 100])("has no more lines than a terminal of %i rows", (rows) => {
    const lines = renderTree(runs, { columns: 80, rows, nowMs: at(1_000) });
    expect(lines.length).toBeLessThanOrEqual(Math.max(1, rows - 1));
    expect(lines.length).toBeGreaterThan(0);
  });

  it("names how many runs have no row", () => {
    const lines = renderTree(runs, { columns: 80, rows: 5, nowMs: at(1_000) });
    expect(lines.at(-1)).toBe("… 6 more runs");
    expect(lines[1]).toBe("  run_1 · Depth 1 · open · $0 spent · 0 in flight");
  });
});

/** Lines of the log with the client's ids of calls: which lines get one, and what is read for them. */
import { describe, expect, it } from "vitest";
import { ItemIds } from "../../../../../durable-objects/run/log/item-ids.ts";
import type { StoredGroup } from "../../../../../durable-objects/run/store/records.ts";
import { groupIdOf, groupSalt } from "../../../../../src/run/queue/group-id.ts";
import { CallPageBuilder } from "../../../../../src/run/queue/call-page.ts";
import type { CallFacts } from "../../../../../src/call.ts";
import type { CallLabels } from "../../../../../src/labels.ts";
import { CALL_PAGE_SLOTS_MAX, LOG_NAMED_GROUPS_MAX } from "../../../../../src/limits.ts";
import { makeHeader } from "../../../../support/engine.ts";
import { taskOf, valid } from "../../../../support/graphs.ts";

const RUN = "run_of_names";
const FACTS: CallFacts = {
  promptBytes: 1,
  messageCount: 1,
  model: null,
  maxTokens: null,
  priority: 2,
  timeoutMs: null,
  mediaParts: 0,
};

const idOf = (seq: number): string => groupIdOf(1_700_000_000_000, seq, groupSalt(RUN));

/** The rows of some groups, and what was read of them. */
class Rows {
  readonly reads: string[] = [];
  readonly stored = new Map<number, StoredGroup>();
  readonly facts = new Map<number, string[]>();
  readonly graphs = new Map<number, string>();

  add(seq: number, named: boolean, header: Partial<StoredGroup["header"]> = {}): void {
    const plain = { defaultsJson: "{}", sealed: true, openKey: "k", detach: true, errorStyle: "bracket" } as const;
    this.stored.set(seq, { ...plain, named, header: makeHeader({ seq, id: idOf(seq), ...header }) });
  }

  /** A group whose calls have these steps, and if there are `copies` a group of one call, so often. */
  addSteps(seq: number, steps: readonly CallLabels[], copies?: number): void {
    this.add(seq, true);
    const builder = new CallPageBuilder({});
    const calls = steps.map((step) => ({ body: { prompt: "x" }, facts: { ...FACTS, ...step } }));
    const [first] = calls;
    const whole = first === undefined || copies === undefined ? null : builder.copies(first, copies);
    const pages = whole === null ? calls.flatMap((call) => builder.add(call) ?? []) : [whole];
    this.facts.set(
      seq,
      [...pages, builder.flush()].flatMap((page) => page?.facts ?? []),
    );
  }

  addNamed(seq: number, ids: readonly (string | null)[], header: Partial<StoredGroup["header"]> = {}): void {
    this.add(seq, true, header);
    const builder = new CallPageBuilder({});
    const pages = ids.flatMap((id) => builder.add({ body: { prompt: "x" }, facts: FACTS, id }) ?? []);
    this.facts.set(
      seq,
      [...pages, builder.flush()].flatMap((page) => page?.facts ?? []),
    );
  }

  get(seq: number) {
    this.reads.push(`group ${seq}`);
    const stored = this.stored.get(seq);
    return stored === undefined ? null : { stored, result: null };
  }

  factsOf(slotId: number) {
    const [seq, index] = [Math.floor(slotId / 65_536), slotId % 65_536];
    const page = Math.floor(index / CALL_PAGE_SLOTS_MAX);
    this.reads.push(`page ${seq} ${page}`);
    const facts = this.facts.get(seq)?.[page];
    return facts === undefined ? null : { firstIndex: page * CALL_PAGE_SLOTS_MAX, facts };
  }

  graphJson(seq: number): string | null {
    this.reads.push(`graph ${seq}`);
    return this.graphs.get(seq) ?? null;
  }
}

const line = (seq: number, index: number | null, event = "slot_completed"): string =>
  JSON.stringify({ atMs: 5, group: idOf(seq), event, index, callId: null, attempts: 1 });

/** The id that a line has got. */
const named = (ids: ItemIds, of: string): unknown => {
  const read: { itemId?: string } = JSON.parse(ids.added(of));
  return read.itemId;
};

describe("the line of an event", () => {
  it("has the id of its call, which is found by its group and its index", () => {
    const rows = new Rows();
    rows.addNamed(3, ["a", null, 'c "quoted"\n']);
    const ids = new ItemIds(rows, () => RUN);
    expect([0, 1, 2].map((index) => named(ids, line(3, index)))).toEqual(["a", undefined, 'c "quoted"\n']);
    expect(ids.added(line(3, 1))).toBe(line(3, 1));
  });

  it("has the id of its task, also of one that was added to the graph later", () => {
    const rows = new Rows();
    const tasks = [taskOf("list"), taskOf("each", { foreach: "{{list.output.json}}", maxItems: 3 }), taskOf("end")];
    rows.add(4, false, { graph: { tasks: 3 }, count: 5 });
    rows.graphs.set(4, JSON.stringify(valid(tasks).graph));
    const ids = new ItemIds(rows, () => RUN);
    const all = [0, 1, 2, 3, 4].map((index) => named(ids, line(4, index, "slot_skipped")));
    expect(all).toEqual(["list", "each", "each", "each", "end"]);
    rows.graphs.set(4, JSON.stringify(valid([...tasks, taskOf("more")]).graph));
    expect([5, 0].map((index) => named(ids, line(4, index)))).toEqual(["more", "list"]);
    expect(rows.reads).toEqual(["group 4", "graph 4", "graph 4"]);
  });

  it("has the step of its call beside its id, or alone", () => {
    const rows = new Rows();
    rows.addSteps(3, [{ step: 3, steps: 20 }, {}, { step: 4 }, { steps: 20 }]);
    rows.addSteps(6, [{ step: 2, steps: 2 }], 5);
    const ids = new ItemIds(rows, () => RUN);
    const stepsOf = (seq: number, index: number) => {
      const { step, steps, itemId }: CallLabels & { itemId?: string } = JSON.parse(ids.added(line(seq, index)));
      return { step, steps, itemId };
    };
    expect(stepsOf(3, 0)).toEqual({ step: 3, steps: 20 });
    expect(stepsOf(3, 2)).toEqual({ step: 4 });
    expect([1, 3].map((index) => ids.added(line(3, index)))).toEqual([line(3, 1), line(3, 3)]);
    expect([0, 4].map((index) => stepsOf(6, index).step)).toEqual([2, 2]);
    expect(ids.added(line(6, 5))).toBe(line(6, 5));
    const tasks = [taskOf("list"), taskOf("end", { step: { step: 7, steps: 9 } })];
    rows.add(4, false, { graph: { tasks: 2 }, count: 2 });
    rows.graphs.set(4, JSON.stringify(valid(tasks).graph));
    expect([0, 1].map((index) => stepsOf(4, index))).toEqual([
      { itemId: "list" },
      { itemId: "end", step: 7, steps: 9 },
    ]);
  });

  it("has the id of its item, if a graph only orders the calls of a batch", () => {
    const rows = new Rows();
    rows.addNamed(5, ["first"], { graph: { tasks: 1, ordersOnly: true } });
    expect(named(new ItemIds(rows, () => RUN), line(5, 0))).toBe("first");
  });

  it.each<[string, string]>([
    [
      "of a single call",
      JSON.stringify({ atMs: 5, group: idOf(3), event: "slot_completed", index: null, callId: "c" }),
    ],
    ["of a group", JSON.stringify({ atMs: 5, group: idOf(3), event: "group_started", count: 1 })],
    ["of a client", JSON.stringify({ atMs: 5, group: idOf(3), event: "client", json: '{"event":"x","index":0,' })],
    ["of a group that is not stored", line(9, 0)],
    ["of another group with its number", line(3, 0).replace("1700000000000", "1700000000001")],
  ])("stays as it is if it is %s", (_, of) => {
    const rows = new Rows();
    rows.addNamed(3, ["a"]);
    expect(new ItemIds(rows, () => RUN).added(of)).toBe(of);
  });

  it("needs one look at its group, and one at each page, however its calls have ended", () => {
    const rows = new Rows();
    rows.addNamed(
      3,
      Array.from({ length: 4 * CALL_PAGE_SLOTS_MAX }, (_, index) => `item ${index}`),
    );
    const ids = new ItemIds(rows, () => RUN);
    for (let round = 0; round < CALL_PAGE_SLOTS_MAX; round++) {
      for (const page of [2, 0, 3, 1]) {
        const index = page * CALL_PAGE_SLOTS_MAX + round;
        expect(named(ids, line(3, index))).toBe(`item ${index}`);
      }
    }
    expect(rows.reads.toSorted()).toEqual(["group 3", "page 3 0", "page 3 1", "page 3 2", "page 3 3"]);
  });

  it("keeps the newest groups only", () => {
    const rows = new Rows();
    for (let seq = 1; seq <= LOG_NAMED_GROUPS_MAX + 1; seq++) rows.addNamed(seq, [`of ${seq}`]);
    const ids = new ItemIds(rows, () => RUN);
    for (let seq = 1; seq <= LOG_NAMED_GROUPS_MAX + 1; seq++) expect(named(ids, line(seq, 0))).toBe(`of ${seq}`);
    rows.reads.length = 0;
    expect([named(ids, line(LOG_NAMED_GROUPS_MAX + 1, 0)), named(ids, line(1, 0))]).toEqual([
      `of ${LOG_NAMED_GROUPS_MAX + 1}`,
      "of 1",
    ]);
    expect(rows.reads).toEqual(["group 1", "page 1 0"]);
  });
});

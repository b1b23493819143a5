/** A graph under test: an engine that is driven like the run object drives it, with the rows that survive a crash. */
import assert from "node:assert/strict";
import { Ledger, NO_LIMITS } from "../../src/run/money/ledger.ts";
import type { Tier } from "../../src/run/answers/tiers.ts";
import type { Outcome } from "../../src/call.ts";
import type { Group } from "../../src/run/group/group.ts";
import type { Speculation } from "../../src/run/group/early-calls.ts";
import { CallPageBuilder, readCall, readFacts, type CallPage } from "../../src/run/queue/call-page.ts";
import { dispatch } from "../../src/run/steps/dispatch.ts";
import { changeGraph, drainGroup, startGraph } from "../../src/run/steps/end-slot.ts";
import { enqueueSlots } from "../../src/run/steps/enqueue.ts";
import { replayQueued } from "../../src/run/steps/recall.ts";
import { giveUpStopped } from "../../src/run/steps/stopping.ts";
import { expireLeases, settle } from "../../src/run/steps/settle.ts";
import type { DueCall } from "../../src/run/services/service.ts";
import { callOpened, dueCalls, needlessCalls } from "../../src/run/services/table.ts";
import { groupSeqOf, slotIdOf, indexOf } from "../../src/run/queue/slot.ts";
import { EngineState, type EngineDeps } from "../../src/run/state.ts";
import { conditionOf, type CompiledGraph, type CompiledTask } from "../../src/run/graph/types.ts";
import { LEASE_TTL_MS } from "../../src/limits.ts";
import { GraphCalls } from "../../durable-objects/run/store/graph-calls.ts";
import { PageCache } from "../../durable-objects/run/store/page-cache.ts";
import type { RunSettings } from "../../src/objects/methods/runs.ts";
import { failure, makeFacts, makeHeader, makeTarget, success } from "./engine.ts";
import { Rows } from "./engine-rows.ts";
import { tiered, type DrawnGraph } from "./frontier-graphs.ts";
import { insertedInto, playReference, promptOf, type Model, type ReferenceSlot } from "./graph-reference.ts";

const SEQ = 1;
const TARGET = makeTarget();
const KEPT = {
  openKey: "open",
  detach: true,
  errorStyle: "bracket",
  named: false,
  defaultsJson: "{}",
  sealed: true,
} as const;

export class GraphUnderTest {
  readonly #drawn: DrawnGraph;
  #graph: CompiledGraph;
  readonly #whole: CompiledGraph;
  readonly #rows = new Rows();
  readonly #settings: RunSettings;
  readonly #deps: EngineDeps;
  /** Attempts that an executor has: their slots and prompts. */
  readonly #lent = new Map<string, { index: number; prompt: string }>();
  /** By the index of a slot: the answers that its calls were charged for, its early one included. */
  readonly #answers = new Map<number, number>();
  #pages: PageCache;
  #calls: GraphCalls;
  #engine: EngineState | null = null;
  #state: EngineState;
  #nowMs = 1_000;
  /** Of the group that was opened last. */
  #lastSeq = SEQ;
  /** Calls whose prompts were made whole to be priced or sent. */
  substitutions = 0;

  /**
   * @param tiers The graph has strict ones, which change when its slots run, and nothing of what they end as.
   * @param opened How many of the tasks it is opened with; `grow` adds the others.
   * @param speculateNanoUsd What early calls may cost for nothing, if tasks with conditions are likely to run; null = there are none.
   */
  constructor(
    drawn: DrawnGraph,
    width: number,
    {
      tiers = null,
      opened = drawn.tasks.length,
      speculateNanoUsd = null,
    }: { tiers?: readonly Tier[] | null; opened?: number; speculateNanoUsd?: number | null } = {},
  ) {
    this.#drawn = drawn;
    const ordered = tiers === null ? drawn.tasks : tiered(drawn.tasks, tiers);
    const mayBeLikely = speculateNanoUsd !== null;
    const tasks = ordered.map((task, position) => withPrompt(mayBeLikely ? withHint(task) : task, position));
    const early = speculateNanoUsd === null ? {} : { speculate: { nanoUsd: speculateNanoUsd } };
    const rules = { version: 1, schedule: "critical_path", onError: "continue", inject: "template" } as const;
    this.#whole = {
      ...rules,
      tasks,
      slots: drawn.slots,
      ...(tiers !== null && { tiers: "strict" as const }),
      ...early,
    };
    this.#graph = opened === tasks.length ? this.#whole : this.#partOf(opened);
    this.#settings = settingsOf(width);
    [this.#pages, this.#calls] = this.#caches();
    this.#deps = {
      random: () => 0,
      factsOf: (slotId) => this.#pages.facts(slotId),
      targetOf: () => TARGET,
      substitutedFactsOf: (slotId) => {
        this.substitutions += 1;
        return this.#calls.factsOf(slotId);
      },
      storedSlot: (slotId) => this.#rows.slot(slotId),
      graphReads: {
        countElements: (source) => this.#calls.countElements(source),
        outputOf: (slotId) => this.#calls.outputOf(slotId),
      },
    };
    this.#state = new EngineState({ ledger: new Ledger(NO_LIMITS), width, windowMs: 50 }, this.#deps);
    this.#engine = this.#state;
    this.#open();
  }

  /** Adds some of the tasks that it was not opened with, if any are left. */
  grow(count: number): void {
    const known = this.#graph.tasks.length;
    if (this.#graph.plan?.state !== "open") return;
    this.#graph = this.#partOf(Math.min(known + count, this.#whole.tasks.length));
    const group = this.#state.groups.get(SEQ);
    assert(group !== undefined);
    const { pages, models } = this.#pagesFrom(known, group.header.models);
    const header = { ...group.header, count: this.#graph.slots, models, graph: { tasks: this.#graph.tasks.length } };
    this.#rows.changeGroup({ ...KEPT, header }, pages);
    this.#rows.putGraph(SEQ, this.#graph);
    this.#calls.clear();
    changeGraph(this.#state, group, { header, compiled: this.#graph }, this.#nowMs);
    this.#turn();
  }

  /** The graph with the first of its tasks, open if others are to follow. */
  #partOf(count: number): CompiledGraph {
    const tasks = this.#whole.tasks.slice(0, count);
    const last = tasks.at(-1);
    const state = count === this.#whole.tasks.length ? "ended" : "open";
    const slots = last === undefined ? 0 : last.first + last.slots;
    return { ...this.#whole, tasks, slots, plan: { state, line: count, faults: [] } };
  }

  step(does: "settle" | "crash" | "lose", pick: number): void {
    if (does === "crash") this.#crash();
    else {
      const ids = [...this.#lent.keys()];
      const attemptId = ids[pick % Math.max(1, ids.length)];
      if (attemptId !== undefined) {
        if (does === "settle") this.#settle(attemptId);
        else this.#lose(attemptId);
      }
    }
    this.#turn();
  }

  /** Answers everything until nothing is left. */
  finish(): void {
    this.grow(this.#whole.tasks.length);
    for (let round = 0; this.#rows.result(SEQ)?.endedAtMs == null || this.#lent.size > 0; round++) {
      assert(round < 2_000, "the graph makes no progress");
      for (const attemptId of this.#lent.keys()) this.#settle(attemptId);
      this.#nowMs += 60_000;
      this.#turn();
    }
  }

  get slotRows(): number {
    return this.#drawnIndexes().filter((index) => this.#rows.slot(slotIdOf(SEQ, index)) !== null).length;
  }

  /** The slots that the log says do not start, in the order of their indexes. */
  get skippedInLog(): (number | null)[] {
    const events = [...[...this.#rows.logRows(0)].flatMap((row) => row.events), ...this.#rows.logTail()];
    return events
      .flatMap((each) => (each.event === "slot_skipped" ? [each.index] : []))
      .sort((a, b) => (a ?? 0) - (b ?? 0));
  }

  /** Each slot as its row has it. */
  outcome(): Pick<ReferenceSlot, "state" | "text">[] {
    const absent = this.#rows.result(SEQ)?.graph?.absent ?? [];
    return this.#drawnIndexes().map((index) => {
      if (absent.some(([first, end]) => first <= index && index < end)) return { state: "absent", text: null };
      const row = this.#rows.slot(slotIdOf(SEQ, index));
      const state =
        row?.state === "completed" || row?.state === "failed" || row?.state === "skipped" ? row.state : "absent";
      assert.equal(row?.state, state, `slot ${index} has ended`);
      if (row?.reason?.reason === "condition_not_met") return { state: "unmet", text: null };
      return { state, text: state === "completed" ? (row?.text ?? null) : null };
    });
  }

  expected(): Pick<ReferenceSlot, "state" | "text">[] {
    return this.#reference().map(({ state, text }) => ({ state, text }));
  }

  #reference(): ReferenceSlot[] {
    return playReference({ ...this.#drawn, tasks: [...this.#whole.tasks] }, this.#model);
  }

  #drawnIndexes(): number[] {
    return Array.from({ length: this.#drawn.slots }, (_, index) => index);
  }

  /** A model answers a prompt always alike: so an answer shows which inputs it had. */
  readonly #model: Model = (prompt, index, elements) => {
    if (this.#drawn.endings[index % this.#drawn.endings.length] !== "completed") return null;
    const hash = hashOf(prompt);
    if (elements === null) return `no list ${hash}`;
    if (elements === undefined) return `answer ${hash}`;
    return JSON.stringify(Array.from({ length: elements }, (_, at) => `${hash}.${at}`));
  };

  #open(): void {
    const { pages, models } = this.#pagesFrom(0, []);
    const { tasks, slots: count } = this.#graph;
    const strict = this.#graph.tiers === undefined ? {} : { rules: { tiers: "strict" as const } };
    const header = makeHeader({ seq: SEQ, count, models, graph: { tasks: tasks.length }, ...strict });
    this.#rows.putGroup({ ...KEPT, header }, pages);
    this.#rows.putGraph(SEQ, this.#graph);
    startGraph(this.#state, this.#state.openGroup(header, this.#graph));
    this.#turn();
  }

  #pagesFrom(position: number, known: readonly (string | null)[]): { pages: CallPage[]; models: (string | null)[] } {
    const builder = new CallPageBuilder({}, { calls: position, models: known });
    const { tasks } = this.#graph;
    const pages: CallPage[] = [];
    for (const task of tasks.slice(position)) {
      const page = builder.add({ body: { prompt: promptOf(task, tasks) }, facts: makeFacts() });
      if (page !== null) pages.push(page);
    }
    const last = builder.flush();
    if (last !== null) pages.push(last);
    return { pages, models: builder.models };
  }

  /** The slots whose call was answered more than once. */
  get answeredTwice(): number[] {
    return [...this.#answers].flatMap(([index, count]) => (count > 1 ? [index] : []));
  }

  /** What the early calls have come to, by the row of the graph. */
  get speculation(): Speculation | undefined {
    return this.#rows.result(SEQ)?.speculation;
  }

  /** What the early calls have cost, by their own rows, whose answers no slot has. */
  get wastedNanoUsd(): number {
    const { open = [], wastedNanoUsd = 0 } = this.speculation ?? {};
    // When the graph ended, they were in flight.
    return open.reduce((sum, seq) => sum + (this.#rows.result(seq)?.usage?.costNanoUsd ?? 0), wastedNanoUsd);
  }

  /** Opens the early calls that are due, and cancels those that are needed no more, as the run object does. */
  #serve(): void {
    for (const group of this.#state.takeServed()) {
      for (const { seq, message } of needlessCalls(group)) {
        const call = this.#state.groups.get(seq);
        if (call === undefined) continue;
        const reason = { reason: "cancelled", message } as const;
        drainGroup(this.#state, call, { state: "cancelled", reason, cause: "cancel" }, this.#nowMs);
        if (call.inFlight > 0) this.#state.stopped.add(call);
      }
      for (let due = this.#dueOf(group); due.length > 0; due = this.#dueOf(group))
        due.forEach((each) => this.#openEarly(each));
    }
    giveUpStopped(this.#state, this.#nowMs);
  }

  #dueOf(group: Group): DueCall[] {
    return dueCalls(group, this.#state, this.#nowMs);
  }

  #openEarly({ serves, call }: DueCall): void {
    assert(call.kind === "slot" && serves.as === "early");
    this.#lastSeq += 1;
    const seq = this.#lastSeq;
    const builder = new CallPageBuilder({});
    builder.add({ body: readCall(this.#calls.callOf(call.slotId), "{}"), facts: call.facts });
    const page = builder.flush();
    assert(page !== null);
    const rules = { background: true, onLost: "fail", models: builder.models } as const;
    const header = makeHeader({ seq, id: `pg-${seq}`, count: 1, serves, ...rules });
    this.#rows.putGroup({ ...KEPT, openKey: `early ${seq}`, header }, [page]);
    const group = this.#state.openGroup(header, null);
    enqueueSlots(this.#state, group, 0, readFacts(page.facts, builder.models));
    const served = this.#state.groups.get(serves.seq);
    assert(served !== undefined);
    callOpened(served, { serves, seq, id: header.id });
  }

  /** The slot of the graph whose call a slot makes: itself, or that for which it is made early. */
  #indexFor(slotId: number): { index: number; isEarly: boolean } {
    const { serves } = this.#state.groups.get(groupSeqOf(slotId))?.header ?? {};
    return serves?.as === "early" ? { index: serves.index, isEarly: true } : { index: indexOf(slotId), isEarly: false };
  }

  /** Dispatches, stores, and only then gives attempts to executors. */
  #turn(): void {
    this.#serve();
    replayQueued(this.#state, this.#nowMs);
    const { assignments } = dispatch(this.#state, new Map([[0, 8]]), this.#nowMs);
    for (const slot of this.#rows.commit(this.#state, this.#nowMs, false)) this.#calls.stored(slot);
    const reference = this.#reference();
    for (const { executor, lease, ...assignment } of assignments) {
      assert(executor !== null && "slotId" in assignment);
      const { index, isEarly } = this.#indexFor(assignment.slotId);
      const callJson = isEarly ? this.#pages.call(assignment.slotId) : this.#calls.callOf(assignment.slotId);
      const { prompt = "" } = readCall(callJson, "{}");
      // The reference knows no prompt of a task that does not run.
      const expected = isEarly ? (reference[index]?.prompt ?? prompt) : reference[index]?.prompt;
      assert.equal(prompt, expected, `the inputs of slot ${index} are there`);
      this.#inputsAreStored(index, isEarly);
      this.#lent.set(lease.attemptId, { index, prompt });
    }
  }

  #inputsAreStored(index: number, isEarly: boolean): void {
    const task = this.#graph.tasks.find(({ first, slots }) => first <= index && index < first + slots);
    assert(task !== undefined);
    for (const dependency of isEarly ? insertedInto(task) : task.dependencies) {
      const before = this.#graph.tasks[dependency];
      const isPipeline = task.foreach?.elementwise === true && task.foreach.source === dependency;
      const [first, count] = isPipeline
        ? [(before?.first ?? 0) + index - task.first, 1]
        : [before?.first ?? 0, before?.slots ?? 0];
      for (let at = first; at < first + count; at++) {
        if (this.#state.groups.get(SEQ)?.graph?.frontier.isAbsent(at) === true) continue;
        const state = this.#rows.slot(slotIdOf(SEQ, at))?.state ?? "queued";
        assert(state !== "queued" && state !== "running", `slot ${index} starts before slot ${at} is stored`);
      }
    }
  }

  #settle(attemptId: string): void {
    const lent = this.#lent.get(attemptId);
    this.#lent.delete(attemptId);
    if (lent === undefined) return;
    const outcome = this.#outcomeOf(lent);
    const settled = settle(this.#state, attemptId, outcome, this.#nowMs);
    if (settled === null || outcome.kind !== "success") return;
    this.#answers.set(lent.index, (this.#answers.get(lent.index) ?? 0) + 1);
  }

  #outcomeOf({ index, prompt }: { index: number; prompt: string }): Outcome {
    const position = this.#whole.tasks.findIndex(({ first, slots }) => first <= index && index < first + slots);
    const feeds = this.#whole.tasks.some(
      ({ foreach: each }) => each !== undefined && each.elementwise !== true && each.source === position,
    );
    const text = this.#model(prompt, index, feeds ? this.#drawn.elements[position] : undefined);
    const answer = success({ promptTokens: 10, completionTokens: 10 });
    return text === null || answer.kind === "failure" ? failure("rejected") : { ...answer, text };
  }

  /** The executor of an attempt dies: its lease expires, and the slot is tried again. */
  #lose(attemptId: string): void {
    this.#lent.delete(attemptId);
    const others = new Set(this.#lent.keys());
    this.#nowMs += LEASE_TTL_MS + 1;
    for (const [id, { lease }] of this.#state.attempts)
      if (others.has(id)) this.#state.setLeaseEnd(lease, this.#nowMs + LEASE_TTL_MS);
    expireLeases(this.#state, this.#nowMs);
  }

  /** A new instance on the same rows. What the last turn has not stored is lost; executors are alive and settle later. */
  #crash(): void {
    [this.#pages, this.#calls] = this.#caches();
    this.#engine = null;
    const deps = { ...this.#deps, targetOfLease: () => TARGET };
    this.#state = this.#rows.rebuild(this.#settings, deps, this.#nowMs);
    this.#engine = this.#state;
  }

  #caches(): [PageCache, GraphCalls] {
    const pages = new PageCache(
      (slotId) => this.#rows.pageOf(slotId),
      (seq) => this.#rows.models(seq),
    );
    const calls = new GraphCalls({
      groupOf: (seq) => this.#engine?.groups.get(seq),
      factsOf: (callId) => pages.facts(callId),
      callOf: (callId) => pages.call(callId),
      rows: this.#rows.slots,
      engine: () => this.#engine,
    });
    return [pages, calls];
  }
}

/** A task whose call may be made early is likely to run. */
function withHint(task: CompiledTask): CompiledTask {
  const { runIf, foreach: each, alternatives, alternativeOf } = task;
  const isCall = each === undefined && alternatives === undefined && alternativeOf === undefined;
  return isCall && conditionOf(runIf) !== null ? { ...task, likely: true } : task;
}

/** Every third task has a fallback; each says that something is inserted into its prompt. */
function withPrompt(task: CompiledTask, position: number): CompiledTask {
  const hasFallback = position % 3 === 2 && task.alternatives === undefined;
  const inserted = insertedInto(task).map((dependency) => [dependency, 1] as const);
  return { ...task, inserted, maxRetries: 20, ...(hasFallback ? { fallback: `fallback ${position}` } : {}) };
}

function hashOf(text: string): string {
  let hash = 7;
  for (let at = 0; at < text.length; at++) hash = (hash * 31 + text.charCodeAt(at)) >>> 0;
  return hash.toString(36);
}

function settingsOf(width: number): RunSettings {
  const rules = { maxDepth: 3, defaultModel: null, errorStyle: "bracket", unpriced: "free" } as const;
  const identity = { id: "r", name: null, parentId: null, ancestors: [], holder: null, depth: 0, createdAtMs: 0 };
  const life = { expiresAtMs: Number.MAX_SAFE_INTEGER, retentionMs: 0, limits: NO_LIMITS, maxParallel: width };
  return {
    ...identity,
    ...rules,
    ...life,
    models: [],
    windowMs: 50,
    weight: 1,
    region: null,
    tools: [],
    metadataJson: "{}",
  };
}

/** Plays a history on real runs, and enters into the model what they answered. */
import assert from "node:assert/strict";
import { env, exports } from "cloudflare:workers";
import { z } from "zod";
import { newRunId } from "../../src/objects/address.ts";
import type { RunInput } from "../../src/objects/methods/runs.ts";
import type { AcquireReply, AcquireRequest, SettleReply } from "../../src/objects/methods/calls.ts";
import { addAmounts, DIMENSIONS, NO_LIMITS, type Amounts, type Limits } from "../../src/run/money/ledger.ts";
import type { Outcome } from "../../src/call.ts";
import { SETTLE_LAG_MS } from "../../src/limits.ts";
import { ADMIN_KEY } from "./object-vars.ts";
import { acquireRequest, crash, evict } from "./objects-direct.ts";
import { runObjectOf } from "./objects-run.ts";
import { amountsOf, costOf, expectAsModelled, modelName, Node, type Attempt } from "./tree-model.ts";
import type { PlannedEnd, TreeOp, TreePlan } from "./tree-plan.ts";

type Op<Name extends TreeOp["do"]> = Extract<TreeOp, { do: Name }>;

/** What operations of one step know of each other. */
type Step = {
  /** Ends runs in the model, once all operations are done. */
  ending: (() => void)[];
  /** Runs that were overdrawn when the step began, and stay so during it. */
  overdrawn: ReadonlySet<Node>;
  crashes: boolean;
  /** Runs that are ended in it, at any time of it, with all below them. */
  ended: ReadonlySet<Node>;
};

const NODES_MAX = 14;

const usage = z.object({ prompt_tokens: z.number(), completion_tokens: z.number(), cost: z.number() });
const batchAnswer = z.object({ usage, items: z.array(z.looseObject({ attempts: z.number() })) });

/** A request for a child run that leaves everything out. */
export const NOTHING_ASKED: RunInput = {
  name: null,
  limits: NO_LIMITS,
  weight: null,
  maxParallel: null,
  maxDepth: null,
  expiresInMs: null,
  models: null,
  defaultModel: null,
  errorStyle: null,
  windowMs: null,
  unpriced: null,
  retentionMs: null,
  region: null,
  metadataJson: "{}",
};

export class TreeRun {
  readonly root: Node;
  readonly counts = { granted: 0, refused: 0, opened: 0, overruns: 0, crashes: 0 };

  private constructor(root: Node) {
    this.root = root;
  }

  static async start(planned: Limits): Promise<TreeRun> {
    const limits = { ...planned };
    const id = namedId();
    const opened = await runObjectOf(id).open({
      id,
      name: null,
      parentId: null,
      ancestors: [],
      holder: null,
      depth: 0,
      createdAtMs: Date.now(),
      expiresAtMs: Date.now() + 86_400_000,
      limits,
      maxParallel: 8,
      maxDepth: 4,
      models: [],
      defaultModel: null,
      errorStyle: "bracket",
      weight: 1,
      region: null,
      windowMs: 50,
      unpriced: "refuse",
      retentionMs: 86_400_000,
      tools: [],
      metadataJson: "{}",
    });
    assert(opened !== null);
    return new TreeRun(new Node(id, null, limits));
  }

  get nodes(): Node[] {
    return this.root.subtree;
  }

  /** Plays all steps; after each, every run must show what the model says. */
  async play(plan: TreePlan): Promise<void> {
    for (const step of plan.steps) {
      await this.#step(step);
      await expectAsModelled(this.root);
      await this.#reportAgain();
      await this.#renew();
    }
  }

  /** Renews the leases of calls in flight, as their Workers do: on a busy machine a history takes longer than a lease lasts. */
  async #renew(): Promise<void> {
    for (const { inFlight, caller } of this.nodes) {
      if (inFlight.size > 0) await caller.callWithRetry<string[]>((run) => run.heartbeat([...inFlight.keys()]));
    }
  }

  /** A report whose reply was lost is made again, at any later time. The next look shows whether it counted twice. */
  async #reportAgain(): Promise<void> {
    const ended = this.nodes.filter(({ isFinal }) => isFinal);
    const { id, parent, spent } = ended[this.counts.granted % Math.max(1, ended.length)] ?? this.root;
    if (parent !== null) await parent.caller.callWithRetry<void>((run) => run.childEnded(id, spent, null));
  }

  async #step(ops: readonly TreeOp[]): Promise<void> {
    const ends = ops.filter((op) => op.do === "end");
    const crashes = ops.some((op) => op.do === "crash");
    // What a crash undoes and an end then gives up cannot be told apart from outside: such a step starts with all written.
    if (crashes && ends.length > 0) await this.#written();
    const { nodes } = this;
    // Evictions come between operations, for they wait for what is under way; crashes come in the midst of it.
    for (const op of ops)
      if (op.do === "crash" && op.how === "evict") await this.#crash(picked(nodes, op.pick), "evict");
    // A limit that is raised, or a reservation that ends, in the same step may make room before the call asks.
    const makesRoom = ops.some((op) => op.do === "patch" || op.do === "settle" || op.do === "end");
    const isOver = (node: Node): boolean => DIMENSIONS.some((dimension) => node.remaining(dimension) < 0);
    // A crash may undo the settlement that has overdrawn a run, until it is reported again at the end of the step.
    const isUndone = ({ subtree }: Node): boolean => crashes && subtree.some(({ unwritten }) => unwritten.size > 0);
    const overdrawn = new Set(makesRoom ? [] : nodes.filter((node) => isOver(node) && !isUndone(node)));
    const open = nodes.filter(({ status }) => status === "open");
    const ended = new Set(ends.map(({ pick }) => picked(open, pick)).filter(({ parent }) => parent !== null));
    const step: Step = { ending: [], overdrawn, crashes, ended };
    await Promise.all([...ops.map((op) => this.#play(op, nodes, step)), this.#watch(nodes)]);
    if (crashes) await this.#repeatWithdrawals(nodes);
    if (crashes && ends.length === 0) await this.#repeatReports(nodes);
    for (const end of step.ending) end();
    // A child that was opened while a run above it ended has ended with it.
    for (const node of this.nodes) if (node.parent !== null && node.parent.status !== "open") this.#endLike(node);
  }

  #endLike(node: Node): void {
    const how = node.parent?.status;
    if (how === "closed" || how === "cancelled") node.end(how);
  }

  #play(op: TreeOp, nodes: readonly Node[], step: Step): Promise<void> {
    // Crashes do not spare the ended.
    const node = picked(op.do === "crash" ? nodes : nodes.filter(({ status }) => status === "open"), op.pick);
    const mayStart = !step.overdrawn.has(node);
    switch (op.do) {
      case "open":
        return this.#open(node, op, mayStart);
      case "call":
        return this.#call(node, op, step);
      case "settle":
        return step.crashes ? Promise.resolve() : this.#settleAny(nodes, op);
      case "batch":
        return step.crashes ? Promise.resolve() : this.#batch(node, op, mayStart);
      case "end":
        return node.parent === null ? Promise.resolve() : this.#end(node, op, step.ending);
      case "patch":
        return this.#patch(node, op);
      case "pause":
        return this.#pause(node);
      case "crash":
        return op.how === "abort" ? this.#crash(node, "abort") : Promise.resolve();
    }
  }

  async #open(parent: Node, { shares, maxParallel }: Op<"open">, mayStart: boolean): Promise<void> {
    if (this.nodes.length >= NODES_MAX || parent.depth >= 4) return;
    const limits: Limits = { ...NO_LIMITS };
    for (const dimension of DIMENSIONS) {
      const share = shares[dimension];
      const left = parent.remaining(dimension);
      if (share !== undefined) limits[dimension] = Math.max(0, Math.floor((Math.min(left, 100_000) * share) / 1_000));
    }
    const id = newRunId(env);
    try {
      const opened = await runObjectOf(parent.id).openChild({ ...NOTHING_ASKED, limits, maxParallel }, id);
      if (!opened.ok) {
        this.counts.refused += 1;
        return;
      }
      assert(mayStart, `${parent.id} is overdrawn and opens a child`);
      this.counts.opened += 1;
      const { budget } = opened.document;
      const { usd } = budget;
      parent.addChild(id, {
        usd: usd.limit === null ? null : Math.round(usd.limit * 1e9),
        calls: budget.calls.limit,
        prompt_tokens: budget.prompt_tokens.limit,
        completion_tokens: budget.completion_tokens.limit,
        new_tokens: budget.new_tokens.limit,
      });
    } catch {
      // Its parent was lost on the way: no client has its token. It is released at once rather than after a lease's time.
      const zero = { usd: 0, calls: 0, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
      const child = new Node(id, null, limits).caller;
      const exists = await child.callWithRetry<boolean>((run) => run.end("cancelled"));
      if (!exists) await parent.caller.callWithRetry<void>((run) => run.childEnded(id, zero, null));
      else await child.callWithRetry<unknown>((run) => run.endAndWait("cancelled", null));
    }
  }

  async #call(node: Node, { model, promptBytes, maxTokens }: Op<"call">, step: Step): Promise<void> {
    const callId = crypto.randomUUID();
    const facts = {
      promptBytes,
      messageCount: 1,
      mediaParts: 0,
      model: modelName(model),
      maxTokens,
      priority: 2,
      timeoutMs: null,
    } as const;
    const acquired = await this.#permitFor(node, acquireRequest(callId, facts), step);
    if (acquired?.ok !== true) {
      this.counts.refused += 1;
      return;
    }
    this.counts.granted += 1;
    const cap = acquired.lease.capTokens;
    assert(cap !== null && cap <= maxTokens && cap >= Math.min(16, maxTokens));
    node.inFlight.set(acquired.lease.attemptId, { model, reserved: amountsOf(model, promptBytes + 8, cap) });
  }

  /**
   * Waits a moment for the permit of a call; then its client leaves, and null is returned: nothing is in flight, and nothing was
   * charged, wherever the grant was.
   */
  async #permitFor(node: Node, request: AcquireRequest, step: Step): Promise<AcquireReply | null> {
    const { overdrawn, ended, crashes } = step;
    const { callId } = request;
    const asking = node.caller.callWithRetry<AcquireReply>((run) => run.acquire(request));
    const settled = asking.then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([settled, scheduler.wait(40).then(() => false)]))) {
      // A run that is cancelled charges what it gives up: a client that left at that moment could not tell whether it did.
      if (node.path.some((above) => ended.has(above))) continue;
      node.left.add(callId);
      await node.caller.callWithRetry<void>((run) => run.withdraw(callId));
    }
    const acquired = await asking;
    assert(acquired.ok !== true || !overdrawn.has(node), `${node.id} is overdrawn and starts a call`);
    if (acquired.ok !== "wait" && !node.left.has(callId)) return acquired;
    node.left.add(callId);
    // An instance that began after the first withdrawal does not know it.
    await node.caller.callWithRetry<void>((run) => run.withdraw(callId));
    if (!crashes) assert(!(await isInFlight(node, callId)), `${callId} has a permit, and its client has left`);
    return null;
  }

  async #settleAny(nodes: readonly Node[], { pick, end }: Op<"settle">): Promise<void> {
    const inFlight = nodes.flatMap((node) => [...node.inFlight].map(([id, attempt]) => ({ node, id, attempt })));
    const chosen = inFlight[pick % Math.max(1, inFlight.length)];
    if (chosen !== undefined) await this.#settle(chosen.node, chosen.id, chosen.attempt, end);
  }

  async #settle(node: Node, attemptId: string, attempt: Attempt, end: PlannedEnd): Promise<void> {
    const { outcome, charge } = endOf(attempt, end);
    const settled = await node.caller.callWithRetry<SettleReply>((run) =>
      run.settle({ attemptId, outcome, stored: null }),
    );
    // It was given up in the same step, or settled by another operation of it.
    if (!settled.known || !node.inFlight.delete(attemptId)) return;
    assert.equal(settled.costNanoUsd, charge.usd);
    addAmounts(node.charged, charge);
    node.unwritten.set(attemptId, outcome);
    const over = DIMENSIONS.some((dimension) => charge[dimension] > attempt.reserved[dimension]);
    if (!over) return;
    node.lied = true;
    this.counts.overruns += 1;
  }

  async #batch(node: Node, { model, count, maxTokens, split }: Op<"batch">, mayStart: boolean): Promise<void> {
    const prompts = Array.from({ length: count }, (_, index) => "word ".repeat(index * 3));
    const asked = { prompts, model: modelName(model), max_tokens: maxTokens };
    const request = exports.default.fetch("http://fanout.test/batch", {
      method: "POST",
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        "x-fanout-run": node.id,
        "content-type": "application/json",
      },
      body: JSON.stringify({ ...asked, budget_policy: split ? "split" : "shared" }),
    });
    const answering = request.then(async (response) => ({ status: response.status, text: await response.text() }));
    const ended = answering.then(
      () => true,
      () => true,
    );
    // Its slots may wait for what calls in flight have reserved: those end as long as it takes.
    while (!(await Promise.race([ended, scheduler.wait(50).then(() => false)]))) {
      for (const [id, attempt] of node.inFlight) await this.#settle(node, id, attempt, { kind: "unknown" });
    }
    const { status, text } = await answering;
    if (status !== 200) {
      assert(status === 401, `a batch was refused with ${status}: ${text}`);
      return;
    }
    const answer = batchAnswer.parse(JSON.parse(text));
    const calls = answer.items.reduce((sum, { attempts }) => sum + attempts, 0);
    assert(mayStart || calls === 0, `${node.id} is overdrawn and starts slots`);
    const { cost, prompt_tokens, completion_tokens } = answer.usage;
    const tokens = { prompt_tokens, completion_tokens, new_tokens: prompt_tokens + completion_tokens };
    addAmounts(node.charged, { usd: Math.round(cost * 1e9), calls, ...tokens });
  }

  async #end(node: Node, { how }: Op<"end">, ending: (() => void)[]): Promise<void> {
    await node.caller.callWithRetry<boolean>((run) => run.end(how));
    ending.push(() => node.end(how));
  }

  async #patch(node: Node, { dimension, share }: Op<"patch">): Promise<void> {
    const limit = node.limits[dimension];
    const wanted = limit === null ? 1_000_000 : Math.floor((limit * share) / 1_000);
    const change = { limits: { [dimension]: wanted }, maxParallel: null, paused: null, rootNanoUsdPerDay: null };
    await node.caller.callWithRetry<unknown>((run) => run.patch(change)).catch(() => undefined);
    // Two patches of a step end in either order: the run says in which.
    const { [dimension]: now } = await node.look();
    const shown = dimension === "usd" && now.limit !== null ? Math.round(now.limit * 1e9) : now.limit;
    node.limits = { ...node.limits, [dimension]: shown };
  }

  async #pause(node: Node): Promise<void> {
    const set = (paused: boolean): Promise<unknown> =>
      node.caller.callWithRetry<unknown>((run) =>
        run.patch({ limits: {}, maxParallel: null, paused, rootNanoUsdPerDay: null }),
      );
    await set(true);
    await scheduler.wait(10);
    await set(false);
  }

  async #crash(node: Node, how: "evict" | "abort"): Promise<void> {
    this.counts.crashes += 1;
    const stub = runObjectOf(node.id);
    // An eviction waits for an alarm, and an alarm may stay with the leases that it found.
    if (how === "abort" || node.inFlight.size > 0) await crash(stub);
    else await evict(stub).catch(() => undefined);
  }

  /** Looks at every run in the midst of a step: the limits hold at every instant. */
  async #watch(nodes: readonly Node[]): Promise<void> {
    for (let look = 0; look < 2; look++) for (const node of nodes) await node.look();
  }

  /** Waits until no crash can undo a settlement. */
  async #written(): Promise<void> {
    if (this.nodes.some(({ unwritten, left }) => unwritten.size + left.size > 0))
      await scheduler.wait(2 * SETTLE_LAG_MS);
    for (const { unwritten, left } of this.nodes) {
      unwritten.clear();
      left.clear();
    }
  }

  /** A permit whose return a crash has undone is returned once more: it would count as lost, and be charged, when its lease ends. */
  async #repeatWithdrawals(nodes: readonly Node[]): Promise<void> {
    for (const node of nodes) {
      for (const callId of node.left) {
        await node.caller.callWithRetry<void>((run) => run.withdraw(callId));
        assert(!(await isInFlight(node, callId)), `${callId} has a permit, and its client has left`);
      }
    }
  }

  /** Executors whose settlement a crash has undone report it once more; for the others it is already known. */
  async #repeatReports(nodes: readonly Node[]): Promise<void> {
    for (const node of nodes) {
      for (const [attemptId, outcome] of node.unwritten) {
        await node.caller.callWithRetry<SettleReply>((run) => run.settle({ attemptId, outcome, stored: null }));
      }
    }
    await this.#written();
  }
}

/** Whether a call has a permit. */
async function isInFlight({ caller }: Node, callId: string): Promise<boolean> {
  const unknown = await caller.callWithRetry<string[]>((run) => run.heartbeat([`${callId}.1`]));
  return unknown.length === 0;
}

function picked(nodes: readonly Node[], pick: number): Node {
  const node = nodes[pick % nodes.length];
  // The root stays open until the end.
  if (node === undefined) throw new Error("no run is open");
  return node;
}

/** The id of a run of an earlier version, which names its object: its children have ids of today. */
function namedId(): string {
  return `run_${crypto.randomUUID().replaceAll("-", "")}`;
}

function endOf({ model, reserved }: Attempt, end: PlannedEnd): { outcome: Outcome; charge: Amounts } {
  const free = { usd: 0, calls: 1, prompt_tokens: 0, completion_tokens: 0, new_tokens: 0 };
  const reason = { reason: "upstream_error", upstream: "up", status: 500, message: "no", retryable: true } as const;
  const failed = (failureClass: "unknown" | "rejected" | "rate_limited"): Outcome => ({
    kind: "failure",
    class: failureClass,
    reason,
    answered: true,
    retryAfterMs: null,
    latencyMs: 1,
  });
  switch (end.kind) {
    case "unknown":
      return { outcome: failed(end.kind), charge: reserved };
    case "rejected":
    case "rate_limited":
      return { outcome: failed(end.kind), charge: free };
    case "no_usage":
      return { outcome: success(null), charge: reserved };
    case "lie": {
      // A prompt that is billed beyond its bytes would be learned as a template, and change what later calls reserve.
      const promptTokens = reserved.prompt_tokens;
      const completionTokens = reserved.completion_tokens * end.times;
      const charge = { ...amountsOf(model, promptTokens, completionTokens) };
      return { outcome: success({ promptTokens, completionTokens, costNanoUsd: null }), charge };
    }
    case "used": {
      const promptTokens = Math.floor((reserved.prompt_tokens * end.promptShare) / 1_000);
      const completionTokens = Math.floor((reserved.completion_tokens * end.completionShare) / 1_000);
      const costNanoUsd = end.costShare === null ? null : Math.floor((reserved.usd * end.costShare) / 1_000);
      const charge = amountsOf(model, promptTokens, completionTokens);
      charge.usd = costNanoUsd ?? costOf(model, promptTokens, completionTokens);
      return { outcome: success({ promptTokens, completionTokens, costNanoUsd }), charge };
    }
  }
}

function success(used: { promptTokens: number; completionTokens: number; costNanoUsd: number | null } | null): Outcome {
  const usage = used === null ? null : { ...used, cachedTokens: 0, reasoningTokens: 0 };
  return { kind: "success", text: "t", model: "x", finishReason: null, usage, latencyMs: 1 };
}

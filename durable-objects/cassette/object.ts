/**
 * The tape of one name. Calls of its upstreams are looked up here before they are sent, and their answers are stored. Its methods
 * are described in src/objects/methods/cassette-api.ts.
 *
 *   exchange  a request and its answer: the key of the request, the number of the answer among those of equal requests
 *   had       which of them the attempts of a run and its child runs have had, so that equal requests stay different samples
 *   facts     row 1: how large the tape is
 */
import { DurableObject } from "cloudflare:workers";
import { likeness, sketchOf } from "../../src/recordings/sketch.ts";
import { missReason, nearest, type Candidate } from "../../src/recordings/nearest.ts";
import type { Exchange, TapedRequest } from "../../src/recordings/types.ts";
import type { Reason } from "../../src/errors.ts";
import { CASSETTE_COMPARED_MAX, TOKEN_CACHE_MAX } from "../../src/limits.ts";
import type { CassetteApi, Taken, TapeFacts, TapeLine, TapeUse } from "../../src/objects/methods/cassette-api.ts";
import { RunCaller } from "../../src/objects/clients/caller.ts";
import type { Objects } from "../../src/objects/address.ts";
import { BoundedMap } from "../../src/renewed/bounded-map.ts";
import { TapeStore, type Use } from "./store.ts";

export class CassetteObject extends DurableObject<Objects> implements CassetteApi {
  readonly #storage: DurableObjectStorage;
  readonly #store: TapeStore;
  readonly #name: string;
  readonly #objects: Objects;
  /** The roots of the trees of runs: a run never changes its tree. */
  readonly #roots = new BoundedMap<string, string>(TOKEN_CACHE_MAX);

  constructor(ctx: DurableObjectState, env: Objects) {
    super(ctx, env);
    this.#storage = ctx.storage;
    this.#objects = env;
    this.#name = ctx.id.name ?? "";
    this.#store = new TapeStore(ctx.storage);
  }

  async take(use: TapeUse): Promise<Taken> {
    const used = await this.#useOf(use);
    const before = this.#store.hadBy(used);
    const had = this.#store.countHad(used.session, use.key);
    const n = before ?? had + 1;
    const line = this.#store.line(use.key, n);
    if (line !== null) {
      if (before === null) this.#store.note(used, n);
      return { answer: exchangeOf(line).answer };
    }
    // A lost attempt may have received the answer, so its call gets it again. Only if no other answer is left, which could be another sample.
    const again = use.mode === "replay" ? this.#store.hadByCall(used) : null;
    const known = again === null ? null : this.#store.line(use.key, again);
    return known === null ? { had } : { answer: exchangeOf(known).answer };
  }

  miss(request: TapedRequest, text: string, had: number): Reason {
    const size = this.#store.facts.exchanges;
    const near = had === 0 && size > 0 ? this.#nearest(request, text) : null;
    const reason = missReason(this.#name, size, had, near);
    this.#store.noteMiss(reason.message);
    return reason;
  }

  #nearest(request: TapedRequest, text: string): ReturnType<typeof nearest> {
    const sketch = sketchOf(text);
    const likely: { number: number; like: number }[] = [];
    for (const known of this.#store.sketches()) {
      likely.push({ number: known.number, like: likeness(known.sketch, sketch) });
    }
    likely.sort((a, b) => b.like - a.like || a.number - b.number);
    const candidates = likely.slice(0, CASSETTE_COMPARED_MAX).flatMap(({ number }): Candidate[] => {
      const line = this.#store.lineNumber(number);
      const exchange = line === null ? null : exchangeOf(line);
      return exchange === null || !("request" in exchange) ? [] : [{ number, request: exchange.request }];
    });
    return nearest(request, candidates);
  }

  async record(use: TapeUse, line: TapeLine | null): Promise<void> {
    const used = await this.#useOf(use);
    this.#storage.transactionSync(() => {
      if (line === null) return this.#store.countUnrecorded();
      const before = this.#store.hadBy(used);
      const n = before ?? this.#store.countHad(used.session, use.key) + 1;
      if (!this.#store.put(line, n, Date.now())) return this.#store.countUnrecorded();
      if (before === null) this.#store.note(used, n);
    });
  }

  facts(): TapeFacts {
    return this.#store.facts;
  }

  lines(from: number): string[] {
    return this.#store.lines(from);
  }

  load(lines: TapeLine[], isFirst: boolean): boolean {
    return this.#storage.transactionSync(() => {
      if (isFirst) this.#store.clear();
      const nowMs = Date.now();
      return lines.every((line) => this.#store.put(line, this.#store.countOf(line.key) + 1, nowMs));
    });
  }

  clear(): void {
    this.#storage.transactionSync(() => this.#store.clear());
  }

  /**
   * A run and its child runs count their calls together, because another of them may make a call the next time. Replayed and
   * recorded calls are counted separately.
   */
  async #useOf({ runId, attemptId, key, mode }: TapeUse): Promise<Use> {
    const root = this.#roots.get(runId) ?? (await this.#rootOf(runId));
    return { session: `${mode} ${root}`, attempt: `${runId}/${attemptId}`, key };
  }

  async #rootOf(runId: string): Promise<string> {
    const root = await new RunCaller(this.#objects, runId).callWithRetry<string | null>((run) => run.rootRun());
    if (root === null) return runId;
    this.#roots.set(runId, root);
    return root;
  }
}

function exchangeOf(line: string): Exchange {
  return JSON.parse(line);
}

/**
 * What a run knows of its upstreams: the tokens that their templates add to prompts, and how their tokenizers count
 * texts. It is learned from the bills of the run's own attempts, and read from the upstream object, which keeps the
 * facts of all runs. Kept in memory only; the shell reports what is new of templates to the upstream object.
 */
import type { CallFacts } from "../../call.ts";
import { fixedTokensOf } from "../../budget/estimate.ts";
import {
  factsFrom,
  isKnown,
  mergedFacts,
  overheadOf,
  sendsTools,
  shapeOf,
  type Overhead,
  type TemplateFacts,
} from "../../budget/template.ts";
import { TEMPLATES_FRESH_MS, TEMPLATES_PER_UPSTREAM_MAX, TEXT_MODELS_MAX } from "../../limits.ts";
import type { Target } from "../shard.ts";

/** The model of facts about all models beyond TEMPLATES_PER_UPSTREAM_MAX: they bound those that are still unseen. */
export const ANY_MODEL = "*";

/** One template's facts, as objects exchange them. */
export type TemplateRow = TemplateFacts & { model: string; shape: string };

/** What is known of an upstream, as it travels with credit. `isRead`: the facts of other runs are in it. */
export type LearnedTemplates = { rows: TemplateRow[]; textRatios: Record<string, number>; isRead: boolean };

/** What this isolate has read of an upstream's templates lately; null = nothing. */
export type RecallTemplates = (upstream: string, nowMs: number) => readonly TemplateRow[] | null;

/** The bill of one attempt: see `TemplateSample`. */
type AttemptBill = { promptTokens: number; byteTokensMax: number | null; textRatio: number | null };

/** What is known of an upstream. */
type Known = {
  /** By model and shape. */
  rows: Map<string, TemplateRow>;
  /** Largest ratio of billed tokens to the look at texts, by model. */
  textRatios: Map<string, number>;
  readAtMs: number;
  /** True when the facts of other runs have arrived, or cannot be read. */
  isRead: boolean;
};

export class Templates {
  readonly #recall: RecallTemplates;
  readonly #upstreams = new Map<string, Known>();
  #wanted = new Set<string>();
  #news = new Map<string, TemplateRow[]>();

  /** @param recall By default no facts are stored anywhere: then all that is known is what this run has seen. */
  constructor(recall: RecallTemplates = () => []) {
    this.#recall = recall;
  }

  /** What to reserve for the template of a call; null if the upstream's template is not learned. */
  overheadOf({ upstream, model, bounds }: Target, facts: CallFacts, nowMs: number): Overhead | null {
    if (bounds.learnsTemplate !== true) return null;
    const known = this.#fresh(upstream, nowMs);
    const shape = shapeOf(facts);
    let largestExcessTokens = 0;
    for (const row of known.rows.values()) {
      if (sendsTools(row.shape) === sendsTools(shape))
        largestExcessTokens = Math.max(largestExcessTokens, row.excessTokens);
    }
    const overhead = overheadOf(fixedTokensOf(facts, bounds), known.rows.get(keyOf(model, shape)), largestExcessTokens);
    if (bounds.vouched === true) return { ...overhead, cautiousTokens: overhead.settledTokens };
    return known.isRead ? overhead : { ...overhead, awaitsFacts: true };
  }

  /** Largest ratio of billed tokens to the look at texts of a model, whatever its requests' shape; undefined = none. */
  textRatioOf({ upstream, model }: Target): number | undefined {
    return this.#upstreams.get(upstream)?.textRatios.get(model);
  }

  /**
   * Takes in the bill of an attempt. Its text ratio counts for every upstream; the template only where it is learned.
   * `byteTokensMax` null = the attempt shows nothing of the template.
   */
  learn(
    { upstream, model, bounds }: Target,
    shape: string,
    { promptTokens, byteTokensMax, textRatio }: AttemptBill,
  ): void {
    const known = this.#knownOf(upstream);
    if (textRatio !== null && (known.textRatios.has(model) || known.textRatios.size < TEXT_MODELS_MAX)) {
      raiseTextRatio(known, model, textRatio);
    }
    // An upstream that counts no tokens shows nothing of its template.
    if (bounds.learnsTemplate !== true || byteTokensMax === null || promptTokens < 1) return;
    const sample = { promptTokens, byteTokensMax, textRatio };
    const seen = factsFrom(sample);
    const { rows } = known;
    // Clients choose models' names, so they must not fill the memory.
    const isRoom = rows.has(keyOf(model, shape)) || rows.size < TEMPLATES_PER_UPSTREAM_MAX;
    const name = isRoom ? model : ANY_MODEL;
    const before = rows.get(keyOf(name, shape));
    if (isKnown(before, seen)) return;
    const row = { model: name, shape, ...mergedFacts(before, seen) };
    rows.set(keyOf(name, shape), row);
    const news = this.#news.get(upstream)?.filter((other) => other.model !== name || other.shape !== shape) ?? [];
    this.#news.set(upstream, [...news, row]);
  }

  /** All that is known of an upstream, for another instance of this class. */
  learnedOf(upstream: string): LearnedTemplates {
    const known = this.#upstreams.get(upstream);
    if (known === undefined) return { rows: [], textRatios: {}, isRead: false };
    return { rows: [...known.rows.values()], textRatios: Object.fromEntries(known.textRatios), isRead: known.isRead };
  }

  /** Takes in what `learnedOf` has returned elsewhere. */
  adopt(upstream: string, { rows, textRatios, isRead }: LearnedTemplates, nowMs: number): void {
    if (isRead) this.read(upstream, [], nowMs);
    const known = this.#knownOf(upstream);
    for (const row of rows) {
      const key = keyOf(row.model, row.shape);
      known.rows.set(key, { ...row, ...mergedFacts(known.rows.get(key), row) });
    }
    for (const [model, ratio] of Object.entries(textRatios)) raiseTextRatio(known, model, ratio);
  }

  /** Takes in the facts of the upstream object, which are those of all runs. */
  read(upstream: string, rows: readonly TemplateRow[], nowMs: number): void {
    const known = this.#knownOf(upstream);
    known.readAtMs = nowMs;
    known.isRead = true;
    for (const row of rows) {
      const key = keyOf(row.model, row.shape);
      known.rows.set(key, { ...row, ...mergedFacts(known.rows.get(key), row) });
      if (row.textRatio !== undefined) raiseTextRatio(known, row.model, row.textRatio);
    }
  }

  /** Upstreams whose facts admission has looked for since the last call, and that must be read. */
  takeWanted(): string[] {
    const wanted = [...this.#wanted];
    this.#wanted.clear();
    return wanted;
  }

  /** Template facts that are new since the last call, by upstream. */
  takeNews(): Map<string, TemplateRow[]> {
    const news = this.#news;
    if (news.size > 0) this.#news = new Map();
    return news;
  }

  #fresh(upstream: string, nowMs: number): Known {
    const known = this.#knownOf(upstream);
    if (nowMs - known.readAtMs < TEMPLATES_FRESH_MS) return known;
    const rows = this.#recall(upstream, nowMs);
    if (rows !== null) this.read(upstream, rows, nowMs);
    else {
      this.#wanted.add(upstream);
      // Requested once per TEMPLATES_FRESH_MS, whether or not the read succeeds.
      known.readAtMs = nowMs;
    }
    return known;
  }

  #knownOf(upstream: string): Known {
    const known = this.#upstreams.get(upstream);
    if (known !== undefined) return known;
    const fresh = {
      rows: new Map<string, TemplateRow>(),
      textRatios: new Map<string, number>(),
      readAtMs: -Infinity,
      isRead: false,
    };
    this.#upstreams.set(upstream, fresh);
    return fresh;
  }
}

function raiseTextRatio({ textRatios }: Known, model: string, ratio: number): void {
  textRatios.set(model, Math.max(ratio, textRatios.get(model) ?? 0));
}

/** Names of models have no control characters. */
function keyOf(model: string, shape: string): string {
  return `${model}\n${shape}`;
}

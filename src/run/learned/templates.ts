/**
 * What a run knows of its upstreams: the tokens that their templates add to prompts, and how their tokenizers count
 * texts. It is learned from the bills of the run's own attempts, and read from the upstream object, which keeps the
 * facts of all runs: those count here that two trees of runs have seen (src/run/money/witnesses.ts). Kept in memory only; the shell reports what is new of templates to the upstream object.
 */
import type { CallFacts } from "../../call.ts";
import { fixedTokensOf, type TokenBounds } from "../money/estimate.ts";
import {
  factsFrom,
  isBare,
  isBareShape,
  isKnown,
  mergedFacts,
  overheadOf,
  sendsImages,
  sendsTools,
  shapeOf,
  shapeOfLease,
  textShapeOf,
  withoutImages,
  type Overhead,
  type TemplateFacts,
} from "../money/template.ts";
import { testimonyOf, type Witness } from "../money/witnesses.ts";
import {
  PROMPT_TOKENS_PER_MESSAGE,
  TEMPLATE_LIFE_MS,
  TEMPLATES_FRESH_MS,
  TEMPLATES_PER_UPSTREAM_MAX,
  TEXT_MODELS_MAX,
} from "../../limits.ts";
import type { Target } from "../leases/shard.ts";

/** The model of facts about all models beyond TEMPLATES_PER_UPSTREAM_MAX: they bound those that are still unseen. */
export const ANY_MODEL = "*";

/**
 * One template's facts, as objects exchange them. `root`: the root of the tree of runs that reports them. `witnesses`: who has
 * seen what of a stored template; a report has none.
 */
export type TemplateRow = TemplateFacts & {
  model: string;
  shape: string;
  root?: string;
  witnesses?: readonly Witness[];
};

/**
 * What is known of an upstream, as it travels with credit. `isRead`: the facts of other runs are in it. `reports`: what
 * single trees have seen of images.
 */
export type LearnedTemplates = {
  rows: TemplateRow[];
  textRatios: Record<string, number>;
  isRead: boolean;
  reports: ImageReport[];
};

/** What one other tree has seen of the images of a model. */
type ImageReport = Pick<TemplateRow, "model" | "shape" | "excessTokens"> & { root: string };

/** What this isolate has read of an upstream's templates lately; null = nothing. */
export type RecallTemplates = (upstream: string, nowMs: number) => readonly TemplateRow[] | null;

/** The bill of one attempt: see `TemplateSample`. */
type AttemptBill = { promptTokens: number; byteTokensMax: number | null; textRatio: number | null };

/** What is known of an upstream. Templates by model and shape, ratios of billed tokens to the look at texts by model. */
type Known = {
  /** Seen by this run's own attempts, or by its tree. */
  own: Map<string, TemplateRow>;
  /**
   * Fewest prompt tokens that this run's own bare calls were billed, by model and shape. In no row, and told to nobody: what one run
   * has seen must not lower what others reserve.
   */
  ownBare: Map<string, number>;
  ownRatios: Map<string, number>;
  /** Believed of what other trees have seen. */
  shared: Map<string, TemplateRow>;
  sharedRatios: Map<string, number>;
  /** What single trees have seen of images. */
  reports: readonly ImageReport[];
  /** Reported, or stored by others lately: no news. */
  stored: Map<string, TemplateFacts>;
  readAtMs: number;
  /** True when the facts of other runs have arrived, or cannot be read. */
  isRead: boolean;
};

export class Templates {
  readonly #recall: RecallTemplates;
  readonly #root: string;
  readonly #upstreams = new Map<string, Known>();
  #wanted = new Set<string>();
  #news = new Map<string, TemplateRow[]>();

  /**
   * @param recall By default no facts are stored anywhere: then all that is known is what this run has seen.
   * @param root The root of the tree that the run belongs to.
   */
  constructor(recall: RecallTemplates = () => [], root = "") {
    this.#recall = recall;
    this.#root = root;
  }

  /** What to reserve for the template of a call; null if the upstream's template is not learned. */
  overheadOf({ upstream, model, bounds }: Target, facts: CallFacts, nowMs: number): Overhead | null {
    if (bounds.learnsTemplate !== true) return null;
    const known = this.#fresh(upstream, nowMs);
    const shape = shapeOf(facts);
    let largestExcessTokens = 0;
    for (const rows of [known.own, known.shared]) {
      for (const row of rows.values()) {
        // What images were billed says nothing of a template.
        if (sendsTools(row.shape) === sendsTools(shape) && !sendsImages(row.shape))
          largestExcessTokens = Math.max(largestExcessTokens, row.excessTokens);
      }
    }
    const bareTokens = bareTokensIn(known, model, { facts, bounds });
    const floorTokens = Math.min(fixedTokensOf(facts, bounds), bareTokens);
    const ofText = factsIn(known, keyOf(model, textShapeOf(facts)));
    const ofImages = sendsImages(shape) ? imageFactsIn(known, model, shape) : undefined;
    const imageExcessTokens = sendsImages(shape) ? imageExcessIn(known, model, bounds) : undefined;
    // What images explain is not the template's.
    const most = imageExcessTokens === undefined ? Infinity : Math.max(floorTokens, ofText?.excessTokens ?? 0);
    const own = ofImages === undefined ? ofText : mergedFacts(ofText, atMost(most, ofImages));
    const learned = withBare(overheadOf(floorTokens, own, largestExcessTokens), bareTokens);
    const overhead = imageExcessTokens === undefined ? learned : { ...learned, imageExcessTokens };
    const awaited = known.isRead ? {} : { awaitsFacts: true };
    if (bounds.vouched === true) return { ...overhead, ...awaited, cautiousTokens: overhead.settledTokens };
    return { ...overhead, ...awaited };
  }

  /** Largest ratio of billed tokens to the look at texts of a model, whatever its requests' shape; undefined = none. */
  textRatioOf({ upstream, model }: Target): number | undefined {
    const known = this.#upstreams.get(upstream);
    if (known === undefined) return undefined;
    const own = known.ownRatios.get(model);
    const shared = known.sharedRatios.get(model);
    return own === undefined || shared === undefined ? (own ?? shared) : Math.max(own, shared);
  }

  /**
   * Takes in the bill of an attempt. Its text ratio counts for every upstream; the template only where it is learned.
   * `byteTokensMax` null = the attempt shows nothing of the template.
   *
   * @param leaseShape The shape of its template and of its request: `leaseShapeOf`.
   */
  learn(
    { upstream, model, bounds }: Target,
    leaseShape: string,
    { promptTokens, byteTokensMax, textRatio }: AttemptBill,
  ): void {
    const known = this.#knownOf(upstream);
    if (textRatio !== null && (known.ownRatios.has(model) || known.ownRatios.size < TEXT_MODELS_MAX)) {
      raise(known.ownRatios, model, textRatio);
    }
    // An upstream that counts no tokens shows nothing of its template.
    if (bounds.learnsTemplate !== true || byteTokensMax === null || promptTokens < 1) return;
    const seen = factsFrom({ promptTokens, byteTokensMax, textRatio });
    const { own, ownBare, stored } = known;
    const shape = shapeOfLease(leaseShape);
    // Clients choose models' names, so they must not fill the memory.
    const ofModel = keyOf(model, shape);
    const isRoom = own.has(ofModel) || own.size < TEMPLATES_PER_UPSTREAM_MAX;
    const name = isRoom ? model : ANY_MODEL;
    const key = isRoom ? ofModel : keyOf(ANY_MODEL, shape);
    if (isRoom && isBareShape(leaseShape)) ownBare.set(key, Math.min(ownBare.get(key) ?? Infinity, promptTokens));
    const before = own.get(key);
    if (isKnown(before, seen)) return;
    const facts = mergedFacts(before, seen);
    const row = { ...facts, model: name, shape, root: this.#root };
    own.set(key, row);
    if (isKnown(stored.get(key), facts)) return;
    stored.set(key, mergedFacts(stored.get(key), facts));
    const news = this.#news.get(upstream)?.filter((other) => other.model !== name || other.shape !== shape) ?? [];
    this.#news.set(upstream, [...news, row]);
  }

  /** All that is known of an upstream, for another instance of this class. */
  learnedOf(upstream: string): LearnedTemplates {
    const known = this.#upstreams.get(upstream);
    if (known === undefined) return { rows: [], textRatios: {}, isRead: false, reports: [] };
    const rows = new Map(known.shared);
    for (const [key, row] of known.own) rows.set(key, { ...row, ...mergedFacts(known.shared.get(key), row) });
    const textRatios = new Map(known.sharedRatios);
    for (const [model, ratio] of known.ownRatios) raise(textRatios, model, ratio);
    const { isRead, reports } = known;
    return { rows: [...rows.values()], textRatios: Object.fromEntries(textRatios), isRead, reports: [...reports] };
  }

  /** Takes in what `learnedOf` has returned elsewhere. */
  adopt(upstream: string, { rows, textRatios, isRead, reports }: LearnedTemplates, nowMs: number): void {
    const known = this.#knownOf(upstream);
    known.reports = reports;
    if (isRead) Object.assign(known, { readAtMs: nowMs, isRead });
    for (const row of rows) {
      const key = keyOf(row.model, row.shape);
      known.shared.set(key, { ...row, ...mergedFacts(known.shared.get(key), row) });
    }
    for (const [model, ratio] of Object.entries(textRatios)) raise(known.sharedRatios, model, ratio);
  }

  /** Takes in what the upstream object has stored of all runs, in place of what it had; null = it could not be read. */
  read(upstream: string, rows: readonly TemplateRow[] | null, nowMs: number): void {
    const known = this.#knownOf(upstream);
    known.readAtMs = nowMs;
    known.isRead = true;
    if (rows === null) return;
    known.shared.clear();
    known.sharedRatios.clear();
    known.stored.clear();
    known.reports = rows.flatMap((row) => imageReports(row, this.#root, nowMs));
    for (const row of rows) {
      const key = keyOf(row.model, row.shape);
      const { believed, stored } =
        row.witnesses === undefined ? { believed: row, stored: row } : testimonyOf(row.witnesses, this.#root, nowMs);
      if (stored !== undefined) known.stored.set(key, stored);
      if (believed === undefined) continue;
      known.shared.set(key, { ...believed, model: row.model, shape: row.shape });
      if (believed.textRatio !== undefined) raise(known.sharedRatios, row.model, believed.textRatio);
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
      own: new Map<string, TemplateRow>(),
      ownBare: new Map<string, number>(),
      ownRatios: new Map<string, number>(),
      shared: new Map<string, TemplateRow>(),
      sharedRatios: new Map<string, number>(),
      reports: [],
      stored: new Map<string, TemplateFacts>(),
      readAtMs: -Infinity,
      isRead: false,
    };
    this.#upstreams.set(upstream, fresh);
    return fresh;
  }
}

function raise(ratios: Map<string, number>, model: string, ratio: number): void {
  ratios.set(model, Math.max(ratio, ratios.get(model) ?? 0));
}

/** What is known of a template: what this run has seen counts at once. */
function factsIn({ own, shared }: Known, key: string): TemplateFacts | undefined {
  const seen = own.get(key);
  return seen === undefined ? shared.get(key) : mergedFacts(shared.get(key), seen);
}

/**
 * Most tokens of the template of a bare call beside those of a message, by what such calls were billed; Infinity = it is not known, or not
 * to be learned. The bill has the tokens of its one message, too, and every prompt reserves those of its messages apart.
 */
function bareTokensIn(
  { ownBare }: Known,
  model: string,
  { facts, bounds }: { facts: CallFacts; bounds: TokenBounds },
): number {
  if (bounds.vouched === true || !isBare(facts)) return Infinity;
  const billed = ownBare.get(keyOf(model, shapeOf(facts))) ?? Infinity;
  return Math.max(0, billed - PROMPT_TOKENS_PER_MESSAGE);
}

/** An overhead whose upper bound is that of bare calls, too. */
function withBare(overhead: Overhead, bareTokens: number): Overhead {
  const { settledTokens, cautiousTokens } = overhead;
  return { ...overhead, cautiousTokens: Math.max(settledTokens, Math.min(cautiousTokens, bareTokens)) };
}

/** What the bills of requests with images have shown, of a model or of one beyond those that are kept apart. */
function imageFactsIn(known: Known, model: string, shape: string): TemplateFacts | undefined {
  const ofModel = factsIn(known, keyOf(model, shape));
  const ofOthers = factsIn(known, keyOf(ANY_MODEL, shape));
  return ofModel === undefined || ofOthers === undefined ? (ofModel ?? ofOthers) : mergedFacts(ofModel, ofOthers);
}

/** What trees other than that of `root` have seen of the images of a row, if it is one of requests with images. */
function imageReports({ model, shape, witnesses = [] }: TemplateRow, root: string, nowMs: number): ImageReport[] {
  if (!sendsImages(shape)) return [];
  return witnesses
    .filter((witness) => witness.root !== root && nowMs - witness.seenAtMs < TEMPLATE_LIFE_MS)
    .map((witness) => ({ model, shape, root: witness.root, excessTokens: witness.excessTokens }));
}

/**
 * Most tokens that images of a model were billed beyond their headers; undefined = none, or the template explains it. It is the
 * image that lies, and not the request around it: so what was seen in requests of any shape counts for all, and two trees agree
 * whatever requests they sent.
 */
function imageExcessIn(known: Known, model: string, bounds: TokenBounds): number | undefined {
  const isLie = (row: Pick<TemplateRow, "model" | "shape" | "excessTokens">): boolean => {
    if (!sendsImages(row.shape) || (row.model !== model && row.model !== ANY_MODEL)) return false;
    const ofText = factsIn(known, keyOf(model, withoutImages(row.shape)));
    const floorTokens = fixedTokensOf({ tools: sendsTools(row.shape) }, bounds);
    return row.excessTokens > Math.max(floorTokens, ofText?.excessTokens ?? 0);
  };
  const byTree = new Map<string, number>();
  for (const report of known.reports) if (isLie(report)) raise(byTree, report.root, report.excessTokens);
  const [, agreed = 0] = [...byTree.values()].sort((a, b) => b - a);
  const believed = [...known.own.values(), ...known.shared.values()].filter(isLie);
  const excessTokens = Math.max(agreed, ...believed.map((row) => row.excessTokens));
  return excessTokens > 0 ? excessTokens : undefined;
}

function atMost(excessTokens: number, facts: TemplateFacts): TemplateFacts {
  return { ...facts, excessTokens: Math.min(facts.excessTokens, excessTokens) };
}

/** Names of models have no control characters. */
function keyOf(model: string, shape: string): string {
  return `${model}\n${shape}`;
}

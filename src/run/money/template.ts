/**
 * The tokens that an upstream adds to a prompt by itself: a chat template, a hidden system prompt. They do not follow
 * from the bytes of the request, so they are learned from bills, per model and shape of request.
 */
import type { CallFacts } from "../../call.ts";
import { PROMPT_TOKENS_FIXED_MAX, PROMPT_TOKENS_UNSEEN } from "../../limits.ts";

/** The facts that were seen of one template. `leastTokens` only falls, the others only rise. */
export type TemplateFacts = {
  /** Fewest prompt tokens that were billed: the template has no more, whatever the texts were. */
  leastTokens: number;
  /** Most tokens that were billed beyond those of a prompt's bytes; negative while every bill was below them. */
  excessTokens: number;
  /** Most tokens billed per token of the look at a text (src/run/money/text-scale.ts); absent = not judged yet. */
  textRatio?: number;
};

/** The bill of one attempt: its prompt tokens, and the most that they can be without the template. */
export type TemplateSample = { promptTokens: number; byteTokensMax: number; textRatio?: number | null };

/** Reservations for the template, in tokens. */
export type Overhead = {
  /** The default, or the largest excess seen if that is more. */
  settledTokens: number;
  /** Upper bound of the template by what is known; equal to `settledTokens` once that is certain. */
  cautiousTokens: number;
  /** True if one attempt may probe with the settled overhead: no bill so far has exceeded it. */
  mayProbe: boolean;
  /**
   * Set if more was billed of images of the model than their headers allow, and by how much: a header that lies is believed once.
   * The template alone does not explain it.
   */
  imageExcessTokens?: number;
  /**
   * True if the facts of other runs have not arrived: a probe before that could overrun a template that they know, and so could a
   * header that is believed.
   */
  awaitsFacts?: boolean;
};

/**
 * The shape of a request: templates differ by endpoint, and with tools. Requests with images have a shape of their own, because
 * their bills also show whether the images are what their headers say.
 */
export function shapeOf(facts: Pick<CallFacts, "endpoint" | "tools"> & Partial<Pick<CallFacts, "mediaParts">>): string {
  return (facts.mediaParts ?? 0) > 0 ? textShapeOf(facts) + IMAGES : textShapeOf(facts);
}

/** The same for a request without its images. */
export function textShapeOf({ endpoint = "chat", tools }: Pick<CallFacts, "endpoint" | "tools">): string {
  return tools === true ? endpoint + TOOLS : endpoint;
}

/** The same for the lease of a call, which also says whether its request is bare: see `isBare`. */
export function leaseShapeOf(facts: CallFacts): string {
  return isBare(facts) ? shapeOf(facts) + BARE : shapeOf(facts);
}

/**
 * True if the prompt is one message of plain text, and nothing else that a template could depend on: then the bill of one such call
 * bounds the template of every other one of the model, because it had that template and a text.
 */
export function isBare(facts: CallFacts): boolean {
  const { endpoint = "chat", messageCount, mediaParts, tools } = facts;
  const isOneText = messageCount === 1 && mediaParts === 0 && facts.fileParts === undefined && tools !== true;
  return facts.isBare === true && isOneText && (endpoint === "chat" || endpoint === "messages");
}

/** True if a lease of this shape is that of a bare request. */
export function isBareShape(shape: string): boolean {
  return shape.endsWith(BARE);
}

/** The shape of a request by that of its lease. */
export function shapeOfLease(shape: string): string {
  return isBareShape(shape) ? shape.slice(0, -BARE.length) : shape;
}

const BARE = "+bare";
const TOOLS = "+tools";
const IMAGES = "+images";

/** True if requests of this shape send tools. */
export function sendsTools(shape: string): boolean {
  return shape.includes(TOOLS);
}

/** True if requests of this shape send images. */
export function sendsImages(shape: string): boolean {
  return shape.endsWith(IMAGES);
}

/** The shape of such requests without their images. */
export function withoutImages(shape: string): string {
  return sendsImages(shape) ? shape.slice(0, -IMAGES.length) : shape;
}

/**
 * The facts that a bill shows. The excess of a mistaken or hostile upstream is capped at what an operator could
 * configure.
 */
export function factsFrom({ promptTokens, byteTokensMax, textRatio = null }: TemplateSample): TemplateFacts {
  const excessTokens = Math.min(promptTokens - byteTokensMax, PROMPT_TOKENS_FIXED_MAX);
  return { leastTokens: promptTokens, excessTokens, ...(textRatio === null ? {} : { textRatio }) };
}

/** The facts of both. */
export function mergedFacts(a: TemplateFacts | undefined, b: TemplateFacts): TemplateFacts {
  if (a === undefined) return b;
  const textRatio = Math.max(a.textRatio ?? 0, b.textRatio ?? 0);
  return {
    leastTokens: Math.min(a.leastTokens, b.leastTokens),
    excessTokens: Math.max(a.excessTokens, b.excessTokens),
    ...(textRatio === 0 ? {} : { textRatio }),
  };
}

/** True if `b` adds nothing to `a`. */
export function isKnown(a: TemplateFacts | undefined, b: TemplateFacts): boolean {
  if (a === undefined || b.leastTokens < a.leastTokens || b.excessTokens > a.excessTokens) return false;
  return (b.textRatio ?? 0) <= (a.textRatio ?? 0);
}

/**
 * @param floorTokens The default, or what the operator configured.
 * @param own Facts of this template; undefined = it is unseen.
 * @param largestExcessTokens Largest excess of any template of its upstream: assumed for an unseen one.
 */
export function overheadOf(floorTokens: number, own: TemplateFacts | undefined, largestExcessTokens: number): Overhead {
  const settledTokens = Math.max(floorTokens, own?.excessTokens ?? largestExcessTokens);
  const leastTokens = own?.leastTokens ?? Infinity;
  return {
    settledTokens,
    cautiousTokens: Math.max(settledTokens, Math.min(leastTokens, PROMPT_TOKENS_UNSEEN)),
    mayProbe: own === undefined || own.excessTokens <= floorTokens,
  };
}

/** Makes the facts of a call, which admission and storage use, from a request that was read. */
import type { CallFacts, DispatchOptions } from "../../../call.ts";
import type { RequestFacts } from "./read.ts";
import { mergeUnreservable } from "./scan-context.ts";

/** Facts that the gateway decides, not the reader of the request. */
type Chosen = Pick<CallFacts, "model" | "priority" | "timeoutMs">;
type RequiredFact = "promptBytes" | "messageCount" | "mediaParts" | keyof DispatchOptions;

/** Facts that most requests do not have. They are stored per call, so defaults are left out. */
export type SpecialFacts = Omit<
  CallFacts,
  RequiredFact | "dedupeKey" | "content" | "isRaw" | "contextBytes" | "shared" | "trace"
>;

/** The special facts of a request that has none. */
export const NO_SPECIAL_FACTS: SpecialFacts = Object.freeze({});

type Absent<T> = { [Name in keyof T]-?: T[Name] | undefined };

type ReadFact = "promptBytes" | "messageCount" | "mediaParts" | "maxTokens" | keyof SpecialFacts;

/** The special facts of a request. The compiler refuses a fact of `CallFacts` that is missing here. */
export function specialFacts(read: Pick<RequestFacts, keyof SpecialFacts>): SpecialFacts {
  const found: Absent<SpecialFacts> = {
    textTokensMax: read.textTokensMax ?? undefined,
    completions: read.completions === 1 ? undefined : read.completions,
    promptTokenIds: read.promptTokenIds === 0 ? undefined : read.promptTokenIds,
    unbounded: read.unbounded.length === 0 ? undefined : read.unbounded,
    images: read.images === undefined || read.images.length === 0 ? undefined : read.images,
    fileParts: read.fileParts === 0 ? undefined : read.fileParts,
    tools: read.tools || undefined,
    isBare: read.isBare || undefined,
    endpoint: read.endpoint === "chat" ? undefined : read.endpoint,
    cacheTtl: read.cacheTtl ?? undefined,
    serviceTier: read.serviceTier ?? undefined,
  };
  return present(found);
}

/** The facts of a whole request. */
export function callFactsOf(read: Pick<RequestFacts, ReadFact>, chosen: Chosen): CallFacts {
  const { promptBytes, messageCount, mediaParts, maxTokens } = read;
  return { promptBytes, messageCount, mediaParts, maxTokens, ...chosen, ...specialFacts(read) };
}

/** The facts of a request that is sent as its client wrote it. */
export function rawCallFactsOf(read: Pick<RequestFacts, ReadFact>, chosen: Chosen): CallFacts {
  const facts = callFactsOf(read, chosen);
  facts.isRaw = true;
  return facts;
}

/** Merges the facts of two parts of one request: its settings and its messages. */
export function mergeFacts(first: SpecialFacts, second: SpecialFacts): SpecialFacts {
  const merged = { ...first, ...second };
  if (first.images !== undefined) merged.images = [...first.images, ...(second.images ?? [])];
  if (first.fileParts !== undefined) merged.fileParts = first.fileParts + (second.fileParts ?? 0);
  if (first.promptTokenIds !== undefined) merged.promptTokenIds = first.promptTokenIds + (second.promptTokenIds ?? 0);
  // Fast mode has a field of its own, which counts before the tier's: see `readRequest`.
  if (first.serviceTier === "fast") merged.serviceTier = "fast";
  if (first.cacheTtl === "1h") merged.cacheTtl = "1h";
  if (first.unbounded !== undefined) merged.unbounded = mergeUnreservable(first.unbounded, second.unbounded ?? []);
  return merged;
}

function present<T extends object>(fields: Absent<T>): Partial<T> {
  const found: Partial<T> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/**
 * One batch at a provider: a page of a group's calls, from the claim to the last answer. Plain JSON, stored before each request
 * whose repetition would cost money, so a crash between two steps repeats no such request.
 */
import type { Endpoint } from "../../call.ts";
import type { ProviderGroup } from "../../objects/methods/provider-batch.ts";

/** A provider's report of a batch that has ended. `completed`: requests it has answered; null = not reported. */
export type BatchEnd = { outputFileId: string | null; errorFileId: string | null; completed: number | null };

export type Part = {
  page: number;
  upstream: string;
  key?: string;
  model: string;
  /** The endpoint of calls that are whole bodies of their client; absent = they are prompts and messages. */
  endpoint?: Endpoint;
  /** Whether answers are checked against schemas. */
  hasSchemas: boolean;
  /** Number of its creation, from 1: a creation after a failed one makes another batch. */
  creation: number;
  fileId: string | null;
  /** When a creation without a known reply was sent, epoch ms; null = none was sent, or it failed. */
  createdAtMs: number | null;
  batchId: string | null;
  /** Requests of that creation, where a batch is known by their number; absent = none was sent, or its metadata has the tag. */
  count?: number;
  /** When the cancellation was accepted, epoch ms; null = it was not. */
  cancelledAtMs: number | null;
  end: BatchEnd | null;
  /** Requests that failed since the last success. */
  failures: number;
  /** Polls so far that found the batch at work. */
  looks: number;
  /** When its next step is due, epoch ms. */
  dueAtMs: number;
};

/** The work for one group. `claimAtMs`: when more calls are to be claimed; null = none will come. */
export type ProviderJob = {
  runId: string;
  seq: number;
  about: ProviderGroup;
  nextPage: number;
  claimAtMs: number | null;
  parts: Part[];
};

export function newPart(
  about: Pick<Part, "page" | "upstream" | "key" | "model" | "endpoint" | "hasSchemas">,
  nowMs: number,
): Part {
  return {
    ...about,
    creation: 1,
    fileId: null,
    createdAtMs: null,
    batchId: null,
    cancelledAtMs: null,
    end: null,
    failures: 0,
    looks: 0,
    dueAtMs: nowMs,
  };
}

/** The metadata value by which a batch is found whose creation had no reply. */
export function tagOf({ runId, seq }: Pick<ProviderJob, "runId" | "seq">, { page, creation }: Part): string {
  return `${runId}/${seq}/${page}/${creation}`;
}

/** What a provider's batch API does for one group, whatever its protocol. Each request ends as data: its result, or what its failure means. */
import type { LineUrl } from "../../batch/endpoints.ts";
import type { BatchLook, Found } from "./next-step.ts";

/**
 * `refused`: nothing was done, and a retry would be refused, too. `later`: nothing was done, but a retry may succeed. `unknown`:
 * it is unknown whether it was done.
 */
export type RequestFailure = { ok: false; why: "refused" | "later" | "unknown"; retryAfterMs: number | null };
export type Requested<Value> = { ok: true; value: Value } | RequestFailure;

/** The requests of one group to its provider. */
export type Provider = {
  /** Uploads the lines of a batch as a file. */
  upload: (lines: string) => Promise<Requested<string>>;
  create: (fileId: string, url: LineUrl, tag: string) => Promise<Requested<string>>;
  /** Creates a batch of requests that are sent with its creation; absent = they are uploaded before. */
  createOf?: (requests: readonly string[]) => Promise<Requested<string>>;
  /** The batch with this tag whose creation had no reply. */
  find: (tag: string, about: LostCreation) => Promise<Requested<Found>>;
  look: (batchId: string) => Promise<Requested<BatchLook>>;
  cancel: (batchId: string) => Promise<Requested<null>>;
  /** The lines of a file, in the form of OpenAI's, by the ids of attempts. It rejects if the file breaks off. */
  lines: (fileId: string, tag: string) => Promise<Requested<AsyncIterable<string>>>;
};

/** `known`: ids of the group's other batches. */
export type LostCreation = { createdAtMs: number; count: number; known: ReadonlySet<string> };

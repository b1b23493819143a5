/** The body of `POST /v1/batches`, refused with OpenAI's messages. The batch itself finds out whether its file exists. */
import * as z from "zod";
import { BATCH_TIER } from "../call.ts";
import {
  BATCH_METADATA_KEY_CHARS_MAX,
  BATCH_METADATA_PAIRS_MAX,
  BATCH_METADATA_VALUE_CHARS_MAX,
  NAME_CHARS_MAX,
} from "../limits.ts";
import { BATCH_URLS, type LineUrl } from "./endpoints.ts";
import { expiresAfter } from "./expires-after.ts";
import {
  charsOf,
  lengths,
  refused,
  schemaFault,
  shorten,
  tooLong,
  unsupported,
  type Checked,
  type Fault,
} from "./refusal.ts";
import { atFirstUse } from "../at-first-use.ts";

/** A request for a batch. */
export type BatchRequest = {
  inputFileId: string;
  url: LineUrl;
  metadata: Record<string, string> | null;
  /** Life of the files that the batch writes, from their creation, seconds; null = they do not expire. */
  outputExpiresAfterS: number | null;
  /** A field of fanout only: whether a file with several models is refused. */
  strict: boolean;
  /** Its lines go through batches of their provider, if it sells them; absent = all are sent live. */
  viaProvider?: true;
  /** Of one whose requests came with its creation: their file, which is checked already. Absent = the client has uploaded it. */
  input?: { bytes: number; requests: number };
};

/** How lines are sent: through their provider's Batch API, or live. Standard clients send it as extra body. */
const serviceTier = atFirstUse(() => z.enum([BATCH_TIER, "default"]));

/** The same as metadata, for clients that can send no further fields. */
export const TIER_METADATA = "fanout_service_tier";

/** The request as documented. */
export const batchCreateBody = atFirstUse(() =>
  z.strictObject({
    input_file_id: z.string().max(NAME_CHARS_MAX),
    endpoint: z.enum(BATCH_URLS),
    completion_window: z.enum(["24h"]),
    metadata: z.record(z.string(), z.string()).nullish(),
    output_expires_after: expiresAfter().nullish(),
    strict: z.boolean().nullish(),
    service_tier: serviceTier().nullish(),
  }),
);

/** A parsed JSON body as a request for a batch, or the first reason to refuse it. */
export function parseBatchCreate(value: unknown): Checked<BatchRequest> {
  const read = batchCreateBody().safeParse(value);
  if (!read.success) return refused(schemaFault(read.error, value));
  const { input_file_id, endpoint, metadata, output_expires_after, strict, service_tier } = read.data;
  const fault = metadata == null ? null : metadataFault(metadata);
  if (fault !== null) return refused(fault);
  const tier = service_tier ?? metadata?.[TIER_METADATA];
  return {
    ok: true,
    value: {
      inputFileId: input_file_id,
      url: endpoint,
      metadata: metadata ?? null,
      outputExpiresAfterS: output_expires_after?.seconds ?? null,
      strict: strict ?? false,
      ...(tier === BATCH_TIER ? { viaProvider: true as const } : {}),
    },
  };
}

/** Lengths are counted in characters, not in the units of JavaScript's strings: OpenAI takes 512 emoji. */
function metadataFault(metadata: Readonly<Record<string, string>>): Fault | null {
  const pairs = Object.entries(metadata);
  if (pairs.length > BATCH_METADATA_PAIRS_MAX) {
    const message = `Invalid 'metadata': too many properties. Expected an object with at most ${BATCH_METADATA_PAIRS_MAX} properties, but got an object with ${pairs.length} properties instead.`;
    return { message, param: "metadata", code: "object_above_max_properties" };
  }
  for (const [key, value] of pairs) {
    if (charsOf(key) > BATCH_METADATA_KEY_CHARS_MAX) {
      const message = `Invalid property name in 'metadata': '${shorten(key)}' is too long. ${lengths(key, BATCH_METADATA_KEY_CHARS_MAX)}`;
      return { message, param: `metadata.${key}`, code: "property_name_above_max_length" };
    }
    if (charsOf(value) > BATCH_METADATA_VALUE_CHARS_MAX) {
      return tooLong(`metadata.${key}`, value, BATCH_METADATA_VALUE_CHARS_MAX);
    }
  }
  const tier = metadata[TIER_METADATA];
  if (tier === undefined || serviceTier().safeParse(tier).success) return null;
  return unsupported(`metadata.${TIER_METADATA}`, tier, serviceTier().options);
}

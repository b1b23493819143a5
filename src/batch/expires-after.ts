/** The life of files: as requested, and by default. */
import * as z from "zod";
import { FILE_EXPIRES_S_MAX, FILE_EXPIRES_S_MIN } from "../limits.ts";
import { atFirstUse } from "../at-first-use.ts";

/** `expires_after` of a file and `output_expires_after` of a batch. */
export const expiresAfter = atFirstUse(() =>
  z.object({
    anchor: z.enum(["created_at"]),
    seconds: z.int().min(FILE_EXPIRES_S_MIN).max(FILE_EXPIRES_S_MAX),
  }),
);

/** Default life of the input file of a batch, seconds: OpenAI's 30 days. */
const BATCH_INPUT_EXPIRES_S = FILE_EXPIRES_S_MAX;

/** When a file expires, unix seconds; null = never. `afterS` = the life that was requested, null = the default. */
export function expiryOf(file: { purpose: string; createdAtS: number }, afterS: number | null): number | null {
  const lifeS = afterS ?? (file.purpose === "batch" ? BATCH_INPUT_EXPIRES_S : null);
  return lifeS === null ? null : file.createdAtS + lifeS;
}

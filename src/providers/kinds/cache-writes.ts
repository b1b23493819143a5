/** What writing to caches costs where the configuration names no price. */
import type { CacheWrites } from "../config/fields.ts";

/** Servers that speak OpenAI's protocol write to their caches by themselves; most charge nothing for it. */
export const WRITTEN_UNASKED: CacheWrites = { unasked: true };

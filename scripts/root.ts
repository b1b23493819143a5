import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the checkout, with wrangler.toml and .dev.vars. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

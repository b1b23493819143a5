/**
 * Beta features of Anthropic's API, which clients name in the header `anthropic-beta` or in the body. A feature can change
 * what is billed without any field, so under a limit only the listed ones pass; an operator allows others with
 * `allow_params`. Names are separated by white space, grouped by source.
 */
import { SPENDS_ALL } from "./field-table.ts";
import type { Noted } from "./scan-context.ts";

/**
 * Features that bill nothing beyond bytes and cap, from the types of Anthropic's TypeScript client and its guides. Some allow
 * a field, a tool or a tier: these have rules of their own.
 */
const ANTHROPIC = `
  prompt-caching-2024-07-31 extended-cache-ttl-2025-04-11 cache-diagnosis-2026-04-07 pdfs-2024-09-25
  files-api-2025-04-14 message-batches-2024-09-24 token-counting-2024-11-01 token-efficient-tools-2025-02-19
  fine-grained-tool-streaming-2025-05-14 max-tokens-3-5-sonnet-2024-07-15 output-128k-2025-02-19
  output-300k-2026-03-24 interleaved-thinking-2025-05-14 dev-full-thinking-2025-05-14
  thinking-token-count-2026-05-13 thinking-display-updates-2026-08-18 thinking-binding-controls-2026-08-01
  computer-use-2024-10-22 computer-use-2025-01-24 computer-use-2025-11-24 structured-outputs-2025-11-13
  structured-outputs-2025-12-15 effort-2025-11-24 task-budgets-2026-03-13 fast-mode-2026-02-01
  model-context-window-exceeded-2025-08-26 context-management-2025-06-27 advanced-tool-use-2025-11-20
  tool-search-tool-2025-10-19 mid-conversation-tool-changes-2026-07-01
`;

/** Longer prompts: their price per token is in the price table, by the length of the prompt. */
const LONG_PROMPTS = "context-1m-2025-08-07";

/** Features that coding agents send with every request, as their published sources list them. */
const AGENTS = `
  claude-code-20250219 oauth-2025-04-20 prompt-caching-scope-2026-01-05 redact-thinking-2026-02-12
  token-efficient-tools-2026-03-28
`;

const LISTED: ReadonlySet<string> = new Set(
  [ANTHROPIC, LONG_PROMPTS, AGENTS].flatMap((names) => names.split(/\s+/).filter((name) => name !== "")),
);

/** The header that names beta features. */
export const BETA_HEADER = "anthropic-beta";

/** The entries of beta features, separated by commas, whose bills are not known. `field`: where the client names them. */
export function unlistedBetas(names: string, field: string): Noted[] {
  const unlisted = names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && !LISTED.has(name));
  return unlisted.map((name) => {
    const why = `The gateway does not know what the beta feature ${JSON.stringify(name.slice(0, NAME_CHARS))} bills.`;
    return { field, why, spends: SPENDS_ALL, allowedBy: `${BETA_HEADER}.${name}` };
  });
}

/** Characters of a name in a message: listed names have up to 40. */
const NAME_CHARS = 64;

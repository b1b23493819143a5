/** What every request to another system's route has: the run that it acts for, and a body. */
import type { Context } from "hono";
import { requireRun } from "./auth/middleware.ts";
import { TOKEN_PREFIX } from "./auth/token-prefix.ts";
import { verifyRunToken } from "./auth/token.ts";
import type { AppEnv } from "./context.ts";
import { readBytes } from "../contract/body.ts";
import { Refusal } from "../errors.ts";
import { bodyRoom } from "./body-bound.ts";

/** The credential's run. Below `/rollout/:id` the id must be that run's, or a token of it; any other is not found. */
export async function dialectRun(c: Context<AppEnv>): Promise<string> {
  const runId = requireRun(c);
  const rollout = c.req.param("id");
  if (rollout === undefined || rollout === runId || (await runOfToken(c, rollout)) === runId) return runId;
  // The id is not repeated: it may be a token.
  throw new Refusal({ reason: "not_found", what: "Rollout" });
}

async function runOfToken(c: Context<AppEnv>, text: string): Promise<string | null> {
  if (!text.startsWith(TOKEN_PREFIX)) return null;
  const verified = await verifyRunToken(c.get("keys").accepted, text, Date.now());
  return verified.ok ? verified.claims.runId : null;
}

/** The body, whatever its content type: the servers that these clients were written for ignored it. */
export async function dialectBytes(c: Context<AppEnv>): Promise<Uint8Array> {
  const bytes = await readBytes(c.req.raw, bodyRoom(c));
  if (!bytes.ok) throw new Refusal(bytes.reason);
  return bytes.value;
}

/** The table of kinds: a new kind is its record, a line here, and its name in `config/types.ts`. */
import { authHeaders } from "../config/auth.ts";
import type { KindName, Upstream } from "../config/types.ts";
import { anthropic } from "./anthropic/kind.ts";
import type { Kind } from "./kind.ts";
import { openai } from "./openai/kind.ts";
import { pull } from "./pull.ts";
import { simulated } from "./simulated.ts";
import { workersAi } from "./workers-ai.ts";

/** In the order in which messages name them. */
export const KINDS: Readonly<Record<KindName, Kind>> = {
  openai,
  anthropic,
  "workers-ai": workersAi,
  simulated,
  pull,
};

/** The record of an upstream's kind. */
export function kindOf({ kind }: Pick<Upstream, "kind">): Kind {
  return KINDS[kind];
}

/** The headers that carry an upstream's key: never log or return them. Empty if it has none. */
export function keyHeadersOf(upstream: Pick<Upstream, "kind" | "apiKey" | "auth">): Record<string, string> {
  return authHeaders(upstream, KINDS[upstream.kind].keyHeaders);
}

/** Whether requests to an upstream go over the network. */
export function isRemote(upstream: Pick<Upstream, "kind">): boolean {
  return kindOf(upstream).sends === "network";
}

/** Whether an answer comes from outside of the gateway: one that is read whole keeps a fetch waiting for its headers. */
export function isFetched(upstream: Pick<Upstream, "kind">): boolean {
  return isRemote(upstream) || kindOf(upstream).sends === "binding";
}

/** Whether programs take an upstream's calls from the run. */
export function isPulled(upstream: Pick<Upstream, "kind">): boolean {
  return kindOf(upstream).sends === "pull";
}

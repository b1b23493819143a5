/** Requests that no tape has: they go to the upstream itself, or nowhere. */
import { Refusal } from "../errors.ts";
import type { Upstream } from "../upstream/config/types.ts";

/** Throws a Refusal if nothing may be sent to the upstream. `what`: what would be requested. */
export function requireUntaped({ cassette }: Upstream, what: string): void {
  if (cassette?.mode !== "replay") return;
  const { tape } = cassette;
  const message = `the tape "${tape}" has calls, and no ${what}; nothing is sent in the mode "replay"`;
  throw new Refusal({ reason: "cassette_miss", message, tape, nearest: null, differences: [] });
}

/** Requests that are never on a tape: they are sent to the upstream itself, or refused. */
import { Refusal } from "../errors.ts";
import type { Upstream } from "../providers/config/types.ts";

/** Throws a Refusal if nothing may be sent to the upstream. `what`: what would be requested. */
export function requireUntaped({ cassette }: Upstream, what: string): void {
  if (cassette?.mode !== "replay") return;
  const { tape } = cassette;
  const message = `the tape "${tape}" cannot answer this request: tapes hold no ${what}, and the mode "replay" sends nothing`;
  throw new Refusal({ reason: "cassette_miss", message, tape, nearest: null, differences: [] });
}

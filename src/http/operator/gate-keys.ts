/** The gates of an upstream: one for each of its keys. */
import { gateNameOf } from "../../providers/config/keys.ts";
import type { Upstream } from "../../providers/config/types.ts";

/** `key` is how an operator names it; null = the upstream has one, or none. */
export type GateKey = { key: string | null; gate: string };

export function keysOf({ name, keys }: Pick<Upstream, "name" | "keys">): GateKey[] {
  if (keys === undefined) return [{ key: null, gate: gateNameOf(name, undefined) }];
  return keys.map((key) => ({ key: `secret:${key.name}`, gate: gateNameOf(name, key.name) }));
}

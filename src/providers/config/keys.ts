/** The keys of an upstream: one or none (`api_key`), or several (`keys`), of which each attempt uses one. */
import { checkedKey } from "./auth.ts";
import { resolveKey, type Resolved } from "./credentials.ts";
import type { Auth, Upstream, UpstreamKey } from "./types.ts";

/** Keys as an upstream has them; `apiKey` is the first of several. */
type Keys = Pick<Upstream, "apiKey" | "keys">;

/** Reads `api_key` or `keys` of an upstream's configuration, of which at most one may be set. */
export function resolveKeys(
  {
    api_key: single,
    keys: listed,
    auth,
  }: { api_key?: string | undefined; keys?: readonly string[] | undefined; auth?: Auth | undefined },
  vars: Record<string, unknown>,
): Resolved<Keys> {
  if (listed === undefined) {
    const read = keyFor(auth, single, vars);
    return read.ok ? { ok: true, value: { apiKey: read.value } } : { ...read, field: ["api_key"] };
  }
  if (single !== undefined) return wrong([], "contradicts api_key: set one of the two");
  const keys: UpstreamKey[] = [];
  for (const [index, reference] of listed.entries()) {
    const name = reference.slice("secret:".length);
    const twin = keys.findIndex((known) => known.name === name);
    if (twin !== -1) return wrong([String(index)], `is the same secret as keys.${twin}: name each once`);
    const read = keyFor(auth, reference, vars);
    if (!read.ok) return wrong([String(index)], read.message);
    if (read.value !== null) keys.push({ name, key: read.value });
  }
  return { ok: true, value: { apiKey: keys[0]?.key ?? null, keys } };
}

/** A key that fits `auth`. The JSON of a service account may have several lines, since it is never sent. */
function keyFor(
  auth: Auth | undefined,
  configured: string | undefined,
  vars: Record<string, unknown>,
): Resolved<string | null> {
  const read = resolveKey(configured, vars, auth?.type === "google" ? "text" : "header");
  if (!read.ok) return read;
  const checked = checkedKey(auth, read.value);
  return checked.ok ? read : checked;
}

function wrong(field: readonly string[], message: string): { ok: false; field: readonly string[]; message: string } {
  return { ok: false, field: ["keys", ...field], message };
}

/**
 * The upstream as a request with this key sees it; `key` is the name of a secret, absent for an upstream without `keys`.
 * null = the configuration does not have the key.
 */
export function underKey(upstream: Upstream, key: string | undefined): Upstream | null {
  if (key === undefined) return upstream;
  const found = upstream.keys?.find(({ name }) => name === key);
  return found === undefined ? null : { ...upstream, apiKey: found.key };
}

/** The gate of an upstream's key: the state that all calls with that key share. */
export function gateNameOf(upstream: string, key: string | undefined): string {
  return key === undefined ? upstream : `${upstream}#${key}`;
}

/** What a gate's name was made of. */
export function gatePartsOf(gate: string): { upstream: string; key: string | undefined } {
  const [upstream = "", key] = gate.split("#");
  return { upstream, key };
}

/** The upstream and the key that a gate's name means; null = the configuration does not have them. */
export function upstreamAt(upstreams: readonly Upstream[], gate: string): Upstream | null {
  const { upstream: name, key } = gatePartsOf(gate);
  const upstream = upstreams.find((candidate) => candidate.name === name);
  return upstream === undefined ? null : underKey(upstream, key);
}

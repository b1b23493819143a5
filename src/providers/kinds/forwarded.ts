/** The entries of a call's `params` that go into the upstream's request. */
import { OWN_PARAMS } from "../formats/request/own-params.ts";
import { CAP_SPELLINGS } from "../formats/request/request-fields.ts";

const CAPS: ReadonlySet<string> = new Set(CAP_SPELLINGS);

/** All but names that have a field of their own, which the edge refuses, and other spellings of the cap: exactly one is sent. */
export function forwardedParams(params: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !OWN_PARAMS.has(name) && !CAPS.has(name)));
}

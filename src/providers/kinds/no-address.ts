/** The refusal of a model whose name cannot stand in the path of an upstream's URL. */
import type { Reason } from "../../errors.ts";

export function noAddress(upstream: string): { ok: false; reason: Reason } {
  const message = `model: has a name that cannot stand in the path of a URL, which ${upstream} needs`;
  return { ok: false, reason: { reason: "invalid_request", message, param: "model" } };
}

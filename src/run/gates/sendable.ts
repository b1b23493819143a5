/** Which choices can take a call: a body that is sent as its client wrote it goes to upstreams of its protocol only. */
import type { CallFacts } from "../../call.ts";
import type { Protocol, Target } from "../leases/shard.ts";

const narrowed = new WeakMap<Target, Partial<Record<Protocol, Target>>>();

/** The target with the choices that can take the call; unchanged if all can, or none: then its attempt says why. */
export function sendable(target: Target, { isRaw, endpoint }: Pick<CallFacts, "isRaw" | "endpoint">): Target {
  if (isRaw !== true || target.route === undefined) return target;
  const protocol = endpoint === "messages" ? "anthropic" : "openai";
  const known = narrowed.get(target) ?? {};
  const found = known[protocol] ?? narrow(target, protocol);
  if (known[protocol] === undefined) narrowed.set(target, { ...known, [protocol]: found });
  return found;
}

function narrow(target: Target, protocol: Protocol): Target {
  const { choices = [], route } = target;
  const left = choices.filter(({ targets: [first] }) => (first?.protocol ?? protocol) === protocol);
  const first = left[0]?.targets[0];
  if (first === undefined || left.length === choices.length || route === undefined) return target;
  return { ...first, protocol, route, choices: left };
}

/** Which credential a route needs, and whether an answer shows that a request came in without it. */
import type { Sender } from "./credential.ts";
import type { Surface } from "./document.ts";
import { servedPathOf } from "./path.ts";

/** `worker`: a pull worker of the run may send it, too. */
export type Needs = "nothing" | "worker" | "run" | "operator";

/** Operations of the operator, as the document names them: no schema says so. */
const OPERATORS = /^(?:GET \/runs|PATCH \/runs\/\{id\}|\w+ \/(?:metrics|upstreams|cassettes)(?:\/.*)?)$/;
const WORKERS = /^POST \/runs\/\{id\}\/(?:claim|heartbeat|complete)$/;

const SUFFICIENT: Readonly<Record<Needs, ReadonlySet<Sender>>> = {
  nothing: new Set<Sender>(["run", "worker", "operator", "forged", "nobody"]),
  worker: new Set<Sender>(["run", "worker", "operator"]),
  run: new Set<Sender>(["run", "operator"]),
  operator: new Set<Sender>(["operator"]),
};

/**
 * What the operation needs to which a request goes. `nothing` also for a target that is the path of no operation: what becomes of it is the router's affair.
 */
export function needsOf(surface: Surface, { method, target }: { method: string; target: string }): Needs {
  // workerd serves a target that is neither a path nor a URL, such as `GET runs`, as the path `/`.
  if (!/^(?:\/|[a-z][a-z0-9+.-]*:)/i.test(target)) return "nothing";
  const path = servedPathOf(target);
  const verb = method === "HEAD" ? "GET" : method;
  const found = surface.operations.find((one) => one.method === verb && patternOf(one.path).test(path));
  if (found === undefined || found.isOpen) return "nothing";
  const name = `${found.method} ${found.path}`;
  if (OPERATORS.test(name)) return "operator";
  return WORKERS.test(name) ? "worker" : "run";
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  const known = patterns.get(path);
  if (known !== undefined) return known;
  const escaped = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "[\\w.~-]+");
  const pattern = new RegExp(`^${escaped}$`);
  patterns.set(path, pattern);
  return pattern;
}

/** The fault of a request that was let in; null if its sender may do what it did. */
export function authorityFault(
  { needs, sender, target }: { needs: Needs; sender: Sender; target: string },
  status: number,
): string | null {
  if (status >= 400 || SUFFICIENT[needs].has(sender)) return null;
  // Without a header, a token in the path is the credential.
  if (needs === "run" && sender === "nobody" && target.includes("/fo-run-")) return null;
  return `lets in the ${sender} where it needs ${needs}`;
}

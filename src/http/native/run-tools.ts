/** The tools of a run: how a request registers them, and who is shown what of them. */
import type { StoredDocument } from "../../objects/methods/runs.ts";
import type { Principal } from "../context.ts";
import { invalid } from "../../contract/errors.ts";
import type { RunDocument, RunRequest } from "../../contract/runs.ts";
import { parametersOf } from "../../tools/input.ts";
import { Refusal } from "../../errors.ts";
import { TOOL_TIMEOUT_MS_DEFAULT } from "../../limits.ts";
import type { ToolHost } from "../../tools/hosts.ts";
import type { Tool } from "../../tools/tool.ts";
import { checkToolUrl } from "../../tools/url.ts";

/** The tools that a request for a root run registers. Refuses an address that the gateway may not be made to call. */
export function toolsOf(request: RunRequest, hosts: readonly ToolHost[]): Tool[] {
  return (request.tools ?? []).map(({ name, url, description, parameters, idempotent, timeout_ms }, index) => {
    const checked = checkToolUrl(url, hosts);
    if (!checked.ok) {
      throw new Refusal(invalid(`tools[${index}].url`, checked.problem).reason);
    }
    return {
      name,
      url: checked.url,
      description: description ?? null,
      ...(parameters !== undefined && { parametersJson: JSON.stringify(parameters) }),
      idempotent: idempotent ?? false,
      timeoutMs: timeout_ms ?? TOOL_TIMEOUT_MS_DEFAULT,
    };
  });
}

/** Refuses tools in a request for a child run: it has its parent's, and a sandbox must not choose what is fetched. */
export function refuseTools(request: RunRequest, principal: Principal): void {
  if (request.tools === undefined) return;
  const param = "tools";
  if (principal.kind === "run") {
    const message = "tools: only the operator may register tools; a child run inherits the tools of its parent";
    throw new Refusal({ reason: "forbidden", message, param });
  }
  const message = "tools: a child run inherits the tools of its parent; register tools when you open the root run";
  throw new Refusal({ reason: "invalid_request", message, param });
}

/** Tools as `principal` may see them: their addresses are the operator's. */
export function shownTools(tools: StoredDocument["tools"], principal: Principal): RunDocument["tools"] {
  return tools.map((tool) => {
    const { name, description, idempotent, timeout_ms, url } = tool;
    const parameters = parametersOf(tool);
    const shown = { name, description, ...(parameters !== null && { parameters }), idempotent, timeout_ms };
    return principal.kind === "operator" && url !== undefined ? { ...shown, url } : shown;
  });
}

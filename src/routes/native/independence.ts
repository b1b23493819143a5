/** `validate_independence` of a batch: the check before it is opened, and what its answer says about it. */
import type { CallBody } from "../../call.ts";
import type { BatchCall, BatchRequest } from "../../contract/batch.ts";
import type { IndependenceReply } from "../../contract/graph/independence.ts";
import { Refusal } from "../../errors.ts";
import { checkIndependence, dependenceMessage, type WorkItem } from "../../graph/independence.ts";
import { templatesOf } from "../../graph/substitute.ts";

/** Checks the items of a batch, if it asks for that. Throws a Refusal if they depend on each other and it says `reject`. */
export function independenceOf(request: BatchRequest): IndependenceReply {
  if (request.independence === null) return {};
  const result = checkIndependence(itemsOf(request.calls), request.aggregate !== null);
  const problem = request.independence === "reject" ? dependenceMessage(result) : null;
  if (problem !== null) throw new Refusal({ reason: "invalid_graph", message: problem, param: "items" });
  const { pass, checks, conflicts } = result;
  return {
    independence: { pass, checks: checks.map((each) => ({ ...each, items: [...each.items] })) },
    conflicts: conflicts.map(({ file, items }) => ({ file, items: [...items] })),
  };
}

function* itemsOf(calls: Iterable<BatchCall>): Generator<WorkItem> {
  let index = 0;
  for (const { id, body, claims } of calls) {
    const { files = [], writes = [], outputLocation = null } = claims ?? {};
    yield { name: id ?? String(index), texts: textsOf(body), files, writes, outputLocation };
    index += 1;
  }
}

function textsOf(body: CallBody): string[] {
  return [...templatesOf(body)];
}

/** `validate_independence` of a batch: the check before it is opened, and what its answer says about it. */
import type { CallBody } from "../../call.ts";
import type { BatchCall, BatchRequest } from "../../contract/batch.ts";
import { invalid } from "../../contract/errors.ts";
import type { IndependenceReply } from "../../contract/independence.ts";
import { Refusal } from "../../errors.ts";
import { checkIndependence, dependenceMessage, type WorkItem } from "../../run/graph/independence.ts";
import { serialize, type SerialItem } from "../../run/graph/serial.ts";
import type { CompiledGraph } from "../../run/graph/types.ts";
import { templatesOf } from "../../run/graph/substitute.ts";

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

/** The order in which the items of a batch run, if it says `serialize` and some conflict; else null. Throws a Refusal. */
export function serialOrderOf({ calls, independence, tiers }: BatchRequest): CompiledGraph | null {
  if (independence !== "serialize") return null;
  const items: SerialItem[] = [];
  for (const { id, facts, claims } of calls) {
    const { files = [], writes = [], outputLocation = null } = claims ?? {};
    const item = { name: id ?? String(items.length), files, writes, outputLocation };
    items.push(facts.tier === undefined ? item : { ...item, tier: facts.tier });
  }
  const serialized = serialize(items, tiers === "strict");
  if (!serialized.ok) throw new Refusal(invalid("validate_independence", serialized.message).reason);
  return serialized.graph;
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

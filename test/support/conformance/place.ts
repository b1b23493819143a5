/** A gateway to examine: with R2, a run, and one thing of each kind that a path can name. */
import { startR2Gateway } from "../r2-gateway.ts";
import type { Gateway } from "../gateway.ts";
import { makeThings } from "../things.ts";

/** What the hooks of schemathesis read: credentials, and the ids that exist below each path, or for one operation. */
export type Place = { url: string; operator: string; token: string; things: Record<string, readonly string[]> };

const SIMULATED = { kind: "simulated" };
const TAPE = "tape";

/** All calls that an examination may make, of a hundred examples per operation, too. */
const CALLS_MAX = 1_000_000;

/** Starts the gateway, and a run in which everything exists once. */
export async function startPlace(): Promise<{ gateway: Gateway; place: Place }> {
  const gateway = await startR2Gateway({
    vars: {
      UPSTREAMS: { sim: SIMULATED, taped: { kind: "cassette", mode: "record", tape: TAPE, upstream: SIMULATED } },
    },
  });
  // A limit of calls only, as a request that fits its schema is then refused for no field that has a price.
  const run = await gateway.openRun({ default_model: "sim/echo", budget: { calls: CALLS_MAX } });
  const { group, dag, context, child, files } = await makeThings(gateway, run.token, { words: "one", hasFiles: true });
  await gateway.fetch(`/runs/${child}/close`, { method: "POST", token: run.token });
  const things = {
    "/groups": [group],
    "/dag": [dag],
    "/runs": [run.id],
    // Its stream of events ends.
    "GET /runs/{id}/events": [child],
    "/contexts": [context],
    ...(files === null
      ? {}
      : { "/v1/files": [files.file], "/v1/uploads": [files.upload], "/v1/batches": [files.batch] }),
    "/v1/models": ["sim/echo"],
    "/rollout": [run.id],
    lang: ["python"],
    tape: [TAPE],
    index: ["0"],
  };
  return { gateway, place: { url: gateway.url, operator: gateway.adminKey, token: run.token, things } };
}

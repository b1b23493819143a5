/**
 * The gateway, with a view of who executes: `GET /bench/executors` counts what has begun in this process, and
 * `POST /bench/instances/:id` has a Workflow instance run again that an earlier process ran, as Cloudflare does after the loss of
 * the machine that ran it.
 * Miniflare's simulation of Workflows forgets running instances when its process ends.
 */
import type { WorkflowEvent, WorkflowStep } from "cloudflare:workers";
import type { GroupName, Objects } from "../../src/objects/address.ts";
import gateway, { LaneObject as Lane, LaneWorkflow as Instance } from "../../src/index.ts";

export {
  BatchObject,
  CassetteObject,
  DirectoryObject,
  GateObject,
  ProviderBatchObject,
  RunObject,
  ShelfObject,
  UpstreamObject,
} from "../../src/index.ts";

/** All classes of a Worker share an isolate, so these count the whole process. */
const begun = { lanes: 0, instances: 0 };
/** Instances that this process runs or has run: they are not lost. */
const known = new Set<string>();

export class LaneObject extends Lane {
  override start(runId: string, lane: number): void {
    begun.lanes += 1;
    super.start(runId, lane);
  }
}

export class LaneWorkflow extends Instance {
  override run(event: Readonly<WorkflowEvent<GroupName>>, step: WorkflowStep): Promise<void> {
    begun.instances += 1;
    known.add(event.instanceId);
    return super.run(event, step);
  }
}

type Env = Parameters<typeof gateway.fetch>[1] & Objects;

export default {
  async fetch(request: Request, env: Env, context: ExecutionContext): Promise<Response> {
    const [, bench, what, id = ""] = new URL(request.url).pathname.split("/");
    if (bench !== "bench") return gateway.fetch(request, env, context);
    if (what === "executors") return Response.json(begun);
    if (known.has(id)) return new Response(null, { status: 409 });
    const instance = await env.WORKFLOW?.get(id).catch(() => null);
    if (instance == null) return new Response(null, { status: 404 });
    await instance.restart();
    return new Response(null, { status: 204 });
  },
};

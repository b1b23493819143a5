/** The operator's view of upstreams: how their keys are limited, and the end of a stop. */
import type { Context, Hono } from "hono";
import { gateOf } from "../../../durable-objects/address.ts";
import { requireOperator, requireReader } from "../../auth/middleware.ts";
import type { AppEnv } from "../../context.ts";
import type { ResumedUpstream, UpstreamGate, UpstreamList } from "../../contract/operator/upstreams.ts";
import { Refusal, quoted } from "../../errors.ts";
import type { Upstream } from "../../upstream/config/types.ts";
import type { Protection } from "../under-run.ts";
import { keysOf } from "./gate-keys.ts";
import { shownGate } from "./shown-gate.ts";

export function mountUpstreams(app: Hono<AppEnv>, protect: Protection): void {
  app.get("/upstreams", ...protect, async (c) => {
    requireReader(c);
    const rows = await Promise.all(c.get("config").upstreams.map((upstream) => gatesOf(c, upstream)));
    const list: UpstreamList = { object: "list", data: rows.flat() };
    return c.json(list);
  });
  app.post("/upstreams/:name/resume", ...protect, async (c) => {
    requireOperator(c);
    const name = c.req.param("name");
    const upstream = c.get("config").upstreams.find((known) => known.name === name);
    if (upstream === undefined) throw new Refusal({ reason: "not_found", what: `upstream ${quoted(name)}` });
    const ended = await Promise.all(keysOf(upstream).map(({ gate }) => gateOf(c.env, gate).resume()));
    const resumed = ended.filter((wasStopped) => wasStopped).length;
    const list: ResumedUpstream = { object: "list", data: await gatesOf(c, upstream), resumed };
    return c.json(list);
  });
}

function gatesOf(c: Context<AppEnv>, upstream: Upstream): Promise<UpstreamGate[]> {
  return Promise.all(
    keysOf(upstream).map(async ({ key, gate }) => {
      const status = await gateOf(c.env, gate).status();
      return { name: upstream.name, key, ...shownGate(status, Date.now()) };
    }),
  );
}

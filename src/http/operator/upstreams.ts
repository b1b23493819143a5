/** The operator's view of upstreams: how their keys are limited, and the end of a stop. */
import type { Context } from "hono";
import { gateOf } from "../../objects/address.ts";
import type { AppEnv } from "../context.ts";
import type { ResumedUpstream, UpstreamGate, UpstreamList } from "../../contract/operator/upstreams.ts";
import { Refusal, quoted } from "../../errors.ts";
import type { Upstream } from "../../providers/config/types.ts";
import type { Handlers } from "../handler.ts";
import { keysOf } from "./gate-keys.ts";
import { shownGate } from "./shown-gate.ts";

export const upstreamHandlers = {
  "GET /upstreams": async (c) => {
    const rows = await Promise.all(c.get("config").upstreams.map((upstream) => gatesOf(c, upstream)));
    const list: UpstreamList = { object: "list", data: rows.flat() };
    return c.json(list);
  },
  "POST /upstreams/:name/resume": async (c) => {
    const name = c.req.param("name");
    const upstream = c.get("config").upstreams.find((known) => known.name === name);
    if (upstream === undefined) throw new Refusal({ reason: "not_found", what: `upstream ${quoted(name)}` });
    const ended = await Promise.all(keysOf(upstream).map(({ gate }) => gateOf(c.env, gate).resume()));
    const resumed = ended.filter((wasStopped) => wasStopped).length;
    const list: ResumedUpstream = { object: "list", data: await gatesOf(c, upstream), resumed };
    return c.json(list);
  },
} satisfies Partial<Handlers>;

function gatesOf(c: Context<AppEnv>, upstream: Upstream): Promise<UpstreamGate[]> {
  return Promise.all(
    keysOf(upstream).map(async ({ key, gate }) => {
      const status = await gateOf(c.env, gate).status();
      return { name: upstream.name, key, ...shownGate(status, Date.now()) };
    }),
  );
}

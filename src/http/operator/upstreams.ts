/** The operator's view of upstreams: how their keys are limited, and the end of a stop. */
import type { Context } from "hono";
import { gateOf } from "../../objects/address.ts";
import type { AppEnv } from "../context.ts";
import type { ResumedUpstream, UpstreamGate, UpstreamList } from "../../contract/operator/upstreams.ts";
import { Refusal, quoted } from "../../errors.ts";
import type { Upstream } from "../../providers/config/types.ts";
import type { Handlers } from "../handler.ts";
import { keysOf } from "./gate-keys.ts";
import { readGates, type NamedGate } from "./read-gates.ts";
import { shownGate } from "./shown-gate.ts";

export const upstreamHandlers = {
  "GET /upstreams": async (c) => {
    const list: UpstreamList = { object: "list", ...(await gatesOf(c, c.get("config").upstreams)) };
    return c.json(list);
  },
  "POST /upstreams/:name/resume": async (c) => {
    const name = c.req.param("name");
    const upstream = c.get("config").upstreams.find((known) => known.name === name);
    if (upstream === undefined) throw new Refusal({ reason: "not_found", what: `upstream ${quoted(name)}` });
    const ended = await Promise.all(keysOf(upstream).map(({ gate }) => gateOf(c.env, gate).resume()));
    const resumed = ended.filter((wasStopped) => wasStopped).length;
    const list: ResumedUpstream = { object: "list", ...(await gatesOf(c, [upstream])), resumed };
    return c.json(list);
  },
} satisfies Partial<Handlers>;

/** The keys of upstreams in the configured order, and those that could not be read. */
async function gatesOf(
  c: Context<AppEnv>,
  upstreams: readonly Upstream[],
): Promise<Pick<UpstreamList, "data" | "unread">> {
  const gates = upstreams.flatMap((upstream) => keysOf(upstream).map((each) => ({ name: upstream.name, ...each })));
  const look = async ({ name, key, gate }: NamedGate): Promise<UpstreamGate> => {
    const status = await gateOf(c.env, gate).status();
    return { name, key, ...shownGate(status, Date.now()) };
  };
  const { read, unread } = await readGates(gates, look, (message, error) => console.error(message, error));
  return unread.length === 0 ? { data: read } : { data: read, unread };
}

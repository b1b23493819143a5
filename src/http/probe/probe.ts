/**
 * `GET /_probe/:n`: measurements of the platform that only a deployment can make. For the operator, and off unless PROBE=1.
 * docs/probe.md says what each settles.
 */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import { Refusal } from "../../errors.ts";
import { PROBE_CALLS_MAX, PROBE_HOLD_MS_MAX } from "../../limits.ts";
import { runsOf } from "../../objects/address.ts";
import { RunCaller } from "../../objects/clients/caller.ts";
import type { Gateway, Handlers } from "../handler.ts";
import { besideHeld, latencies, longHold, widthOf, type Clock } from "./measure.ts";

type Probe = (c: Context<AppEnv>) => Promise<Record<string, unknown>>;

/** The runtime's clock does not advance while no I/O happens: each measurement waits for some. */
const clock: Clock = { now: () => Date.now() };

/** Sends the gateway a request of its own: the operator's. */
export type Own = (
  c: Context<AppEnv>,
  path: string,
  body: unknown,
  headers?: Record<string, string>,
) => Promise<Response>;

export const probeHandlers = {
  "GET /_probe/hold": async (c) => {
    requireProbe(c);
    await scheduler.wait(numberOf(c, "ms", 1_000, PROBE_HOLD_MS_MAX));
    return c.json({ held: true });
  },
  "GET /_probe/:n": async (c, gateway) => {
    requireProbe(c);
    const n = Number(c.req.param("n"));
    const probe = probesOf(ownOf(gateway))[n];
    if (probe === undefined) throw new Refusal({ reason: "not_found", what: "probe" });
    return c.json({ object: "probe", probe: n, at: new Date().toISOString(), ...(await probe(c)) });
  },
} satisfies Partial<Handlers>;

function ownOf(gateway: Gateway): Own {
  return async (c, path, body, headers = {}) => {
    const authorization = c.req.header("authorization") ?? "";
    const request = new Request(new URL(path, c.req.url), {
      method: "POST",
      headers: { authorization, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return await gateway.fetch(request, c.env, c.executionCtx);
  };
}

function requireProbe(c: Context<AppEnv>): void {
  if (!c.get("config").probes) throw new Refusal({ reason: "not_found", what: "route" });
}

function probesOf(own: Own): Record<number, Probe> {
  const opened = (c: Context<AppEnv>): Promise<string> => openedRun(c, own);
  return {
    1: (c) => {
      const runs = runsOf(c.env);
      const object = runs.get(runs.newUniqueId());
      return besideHeld(clock, { ...heldOf(c, 6), call: async () => object.figures() });
    },
    2: (c) => widthOf(clock, heldOf(c, 24)),
    3: (c) => idleSockets(c, opened),
    4: (c) => rowsOfRuns(c, opened),
    5: async (c) => {
      const runs = runsOf(c.env);
      const count = numberOf(c, "count", 20, PROBE_CALLS_MAX);
      // Neither stores anything: a run that was never opened has no figures.
      const named = await latencies(clock, count, async () => runs.getByName(`probe-${crypto.randomUUID()}`).figures());
      const unique = await latencies(clock, count, async () => runs.get(runs.newUniqueId()).figures());
      return { named, unique };
    },
    6: async (c) => {
      const run = await opened(c);
      const count = numberOf(c, "count", 100, PROBE_CALLS_MAX);
      const object = new RunCaller(c.env, run);
      const figures = () => object.callOnce<unknown>((stub) => stub.figures());
      await figures();
      const read = await latencies(clock, count, figures);
      const event = { json: JSON.stringify({ event_type: "probe" }), parallelGroupId: null };
      const written = await latencies(clock, count, () =>
        object.callOnce<unknown>((stub) => stub.appendLog([event], null)),
      );
      return { run, read, written };
    },
    7: (c) => leftGroup(c, own, 1),
    8: (c) => leftGroup(c, own, numberOf(c, "calls", 512, PROBE_CALLS_MAX)),
    9: (c) => longHold(clock, { ...heldOf(c, 1), holdMs: numberOf(c, "ms", 130_000, PROBE_HOLD_MS_MAX) }),
  };
}

/**
 * Fetches that wait for their headers: at the URL of `url`, which must answer as late as its parameter `ms` says; by default
 * at this gateway. Only the gateway itself is sent the operator's key.
 */
function heldOf(c: Context<AppEnv>, held: number) {
  const own = new URL("/_probe/hold", c.req.url);
  const named = c.req.query("url");
  const base = named === undefined ? own : URL.parse(named);
  if (base === null) throw new Refusal({ reason: "invalid_request", message: "url: expected a URL", param: "url" });
  const authorization = c.req.header("authorization") ?? "";
  const headers: HeadersInit = base.origin === own.origin ? { authorization } : {};
  return {
    held: numberOf(c, "count", held, PROBE_CALLS_MAX),
    holdMs: numberOf(c, "ms", 2_000, PROBE_HOLD_MS_MAX),
    hold: async (holdMs: number): Promise<number> => {
      const url = new URL(base);
      url.searchParams.set("ms", String(holdMs));
      const { status, body } = await fetch(url, { headers });
      await body?.cancel();
      return status;
    },
  };
}

/** Opens a run for an hour; it deletes itself a day later. */
async function openedRun(c: Context<AppEnv>, own: Own): Promise<string> {
  const response = await own(c, "/runs", { name: "probe", expires_in_s: 3_600, budget: { usd: 1 } });
  const opened: { id?: unknown } = await response.json();
  if (typeof opened.id !== "string") throw new Error(`the probe could open no run: ${response.status}`);
  return opened.id;
}

/** Keeps sockets to one object open and silent. What that costs is in the object's billed duration. */
async function idleSockets(
  c: Context<AppEnv>,
  opened: (c: Context<AppEnv>) => Promise<string>,
): Promise<Record<string, unknown>> {
  const run = await opened(c);
  const count = numberOf(c, "count", 10, PROBE_CALLS_MAX);
  const holdMs = numberOf(c, "ms", 60_000, PROBE_HOLD_MS_MAX);
  const object = new RunCaller(c.env, run);
  const sockets: WebSocket[] = [];
  const from = new Date().toISOString();
  for (let at = 0; at < count; at++) {
    const headers = { upgrade: "websocket" };
    const { webSocket } = await object.callOnce<Response>((stub) => stub.fetch("https://run/follow", { headers }));
    webSocket?.accept();
    if (webSocket !== null) sockets.push(webSocket);
  }
  await scheduler.wait(holdMs);
  for (const socket of sockets) socket.close(1000);
  return { run, sockets: sockets.length, from, to: new Date().toISOString() };
}

/** Opens runs and counts the rows that they report, to be compared with those that are billed. */
async function rowsOfRuns(
  c: Context<AppEnv>,
  opened: (c: Context<AppEnv>) => Promise<string>,
): Promise<Record<string, unknown>> {
  const count = numberOf(c, "count", 10, PROBE_CALLS_MAX);
  const from = new Date().toISOString();
  let rows = 0;
  for (let at = 0; at < count; at++) {
    const object = new RunCaller(c.env, await opened(c));
    const { all } = await object.callOnce<{ all: number }>((stub) => stub.rowsWritten());
    rows += all;
  }
  return { runs: count, rows_counted: rows, from, to: new Date().toISOString() };
}

/** Opens a group without a client, to be looked at later: after twenty minutes, or after a deploy. */
async function leftGroup(c: Context<AppEnv>, own: Own, calls: number): Promise<Record<string, unknown>> {
  const run = await openedRun(c, own);
  const model = c.req.query("model");
  const prompts = Array.from({ length: calls }, (_, at) => `probe ${at}`);
  const headers = { "x-fanout-run": run, prefer: "respond-async" };
  const response = await own(c, "/batch", { prompts, ...(model === undefined ? {} : { model }) }, headers);
  const group: { id?: unknown } = await response.json();
  return {
    run,
    status: response.status,
    group: group.id ?? null,
    look_at: [`/groups/${String(group.id)}`, `/runs/${run}/log`],
  };
}

/** A count from the query. */
function numberOf(c: Context<AppEnv>, name: string, missing: number, max: number): number {
  const text = c.req.query(name);
  const value = text === undefined ? missing : Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  const message = `${name}: expected a whole number from 1 to ${max}`;
  throw new Refusal({ reason: "invalid_request", message, param: name });
}

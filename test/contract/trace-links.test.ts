/** A client's `traceparent`: what it asks for is in its trace, as OpenTelemetry's own reader of the exported requests sees it. */
import { expect, describe, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { startCollector, type Collector } from "../support/collector.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { OTLP_MODULE, readSpans, type ReadSpan } from "../support/otlp-parser.ts";
import { missingPackage } from "../support/python-packages.ts";
import { logOf, type LogLine } from "./following.ts";
import { documentOf, startWorld, type RunAccess, type World } from "./world.ts";

const missing = missingPackage(OTLP_MODULE);
reportLeftOut("the check of exported traces by OpenTelemetry's reader", missing);

/** Long, for a machine that is busy: an export is due after five seconds. */
const EXPORTED_MS = 60_000;

/** The client's spans so far; each is of a trace of its own. */
class Client {
  readonly spans = new Map<string, string>();

  /** Headers of a request that the client sends from a span of a new trace. */
  headers({ sampled = true, state = "" } = {}): Record<string, string> {
    const number = (this.spans.size + 1).toString(16);
    const [trace, span] = [number.padStart(32, "c"), number.padStart(16, "a")];
    this.spans.set(span, trace);
    const traceparent = `00-${trace}-${span}-0${sampled ? 1 : 0}`;
    return state === "" ? { traceparent } : { traceparent, tracestate: state };
  }
}

const opened = z.object({ id: z.string(), token: z.string() });

async function openRun(world: World, headers: Record<string, string>): Promise<RunAccess> {
  const json = { default_model: "up-1", window_ms: 5_000, budget: { usd: 1 } };
  const { id, token } = opened.parse((await world.sendAsOperator("/runs", { json, headers })).json);
  return { id, token, send: (path, request) => world.send(path, { token, ...request }) };
}

async function worldWithCollector(): Promise<{ world: World; collector: Collector }> {
  const collector = await startCollector();
  onTestFinished(() => collector.stop());
  const world = await startWorld(undefined, { OTLP_ENDPOINT: collector.url });
  onTestFinished(() => world.stop());
  return { world, collector };
}

/** The spans of all posts, once there are so many runs and groups among them: a group of single calls may end after its run. */
async function exported(collector: Collector, ends: { runs: number; groups: number }): Promise<ReadSpan[]> {
  const named = (wanted: string) => collector.spans().filter(({ name }) => name === wanted).length;
  const ended = () => ({ runs: named("run"), groups: named("group") });
  await vi.waitFor(() => expect(ended()).toEqual(ends), { timeout: EXPORTED_MS, interval: 100 });
  return readSpans(collector.posts.map(({ body }) => body));
}

const groupsOf = (lines: LogLine[]) => lines.filter(({ event_type }) => event_type === "group_started").length;
const close = (run: RunAccess) => run.send(`/runs/${run.id}/close`, { method: "POST" });

describe.skipIf(missing !== null)("traceparent", () => {
  it(
    "makes what a client asks for a child of its span, everywhere; and the tokens are those of the ledger",
    { tags: ["slow"] },
    async () => {
      const { world, collector } = await worldWithCollector();
      const client = new Client();
      const run = await openRun(world, client.headers({ state: "vendor=run" }));
      const send = async (path: string, json: object, headers = client.headers()) => {
        const answer = await run.send(path, { json, headers });
        expect([path, answer.status]).toEqual([path, 200]);
      };
      const prompts = ["good", "{{status/400}} rejected", "{{status/503/first/1}} transient", "fourth"];
      await send("/batch", { prompts }, client.headers({ state: "vendor=batch" }));
      await send("/dag", {
        tasks: [
          { id: "a", prompt: "first" },
          { id: "b", prompt: "then {{a.output}}" },
        ],
      });
      await send("/query", { prompt: "stored" }, { ...client.headers(), "idempotency-key": "k" });
      const messages = [{ role: "user", content: "a stream" }];
      await send("/v1/chat/completions", { model: "sim/echo", stream: true, messages });
      // So many that the gateway starts some of them without asking the run's object.
      for (let round = 0; round < 6; round++) {
        await Promise.all(Array.from({ length: 5 }, (_, at) => send("/query", { prompt: `single ${round} ${at}` })));
      }
      const child = await run.send("/runs", { json: { default_model: "up-1" }, headers: client.headers() });
      const { id, token } = opened.parse(child.json);
      await world.send("/query", { token, json: { prompt: "of the child" } });
      await world.send(`/runs/${id}/close`, { token, method: "POST" });
      await close(run);

      const spans = await exported(collector, { runs: 2, groups: groupsOf(await logOf(run)) });
      const byId = new Map(spans.map((span) => [span.id, span]));
      expect(byId.size).toBe(spans.length);
      const orphans = spans.filter((span) => {
        const parent = byId.get(span.parent)?.trace ?? client.spans.get(span.parent);
        return parent !== span.trace;
      });
      expect(orphans).toEqual([]);
      expect(spans.flatMap(({ links }) => links).filter(([trace, span]) => byId.get(span)?.trace !== trace)).toEqual(
        [],
      );
      // Each request of the client has one child, whatever it has asked for.
      const children = spans.filter(({ parent }) => client.spans.has(parent));
      expect(children.map(({ parent }) => parent).toSorted()).toEqual([...client.spans.keys()].toSorted());
      expect(children.filter(({ name }) => name === "group")).toHaveLength(2);
      expect(children.filter(({ name }) => name === "run")).toHaveLength(2);
      // All but the first run came from a run, to which they are linked.
      expect(children.filter(({ links }) => links.length === 1)).toHaveLength(children.length - 1);
      expect(spans.filter(({ state }) => state !== "").map(({ name, state }) => [name, state])).toEqual(
        expect.arrayContaining([
          ["run", "vendor=run"],
          ["group", "vendor=batch"],
        ]),
      );
      const attempts = spans.filter(({ name }) => name.startsWith("chat "));
      expect(attempts).toHaveLength(5 + 2 + 1 + 1 + 30 + 1);
      const { prompt_tokens, completion_tokens } = (await documentOf(run)).budget;
      const sum = (at: 0 | 1) => spans.reduce((total, { tokens }) => total + tokens[at], 0);
      expect(sum(0)).toBeGreaterThan(0);
      expect([sum(0), sum(1)]).toEqual([prompt_tokens.spent, completion_tokens.spent]);
    },
  );

  it(
    "that is invalid, or that its client does not record, leaves what it asks for in the run's trace",
    { tags: ["slow"] },
    async () => {
      const { world, collector } = await worldWithCollector();
      const client = new Client();
      const run = await openRun(world, {});
      const invalid = { traceparent: `00-${"0".repeat(32)}-${"a".repeat(16)}-01`, tracestate: "vendor=1" };
      await run.send("/query", { json: { prompt: "invalid" }, headers: invalid });
      await run.send("/batch", { json: { prompts: ["a", "b"] }, headers: client.headers({ sampled: false }) });
      await close(run);
      const spans = await exported(collector, { runs: 1, groups: groupsOf(await logOf(run)) });
      expect(new Set(spans.map(({ trace }) => trace)).size).toBe(1);
      expect(spans.filter(({ parent }) => parent === "").map(({ name }) => name)).toEqual(["run"]);
      expect(spans.filter(({ state }) => state !== "")).toEqual([]);
      const links = [...client.spans].map(([span, trace]) => [trace, span]);
      expect(spans.flatMap((span) => span.links)).toEqual(links);
    },
  );
});

/** One request of a client; `attempts`: how many its calls make. */
type Asked = { path: string; json: object; attempts: number; status?: number; accept?: string };

const messages = [{ role: "user", content: "a stream" }];
const ASKED: readonly Asked[] = [
  { path: "/query", json: { prompt: "a call" }, attempts: 1 },
  { path: "/query", json: { prompt: "{{status/400}} rejected" }, attempts: 1, status: 502 },
  { path: "/batch", json: { prompts: ["one", "two"] }, attempts: 2 },
  { path: "/batch", json: { prompts: ["three", "four"] }, attempts: 2, accept: "application/x-ndjson" },
  { path: "/dag", json: { tasks: [{ id: "a", prompt: "a task" }] }, attempts: 1 },
  { path: "/llm_query", json: { prompt: "of a dialect" }, attempts: 1 },
  { path: "/v1/chat/completions", json: { model: "up-1", messages }, attempts: 1 },
  { path: "/v1/chat/completions", json: { model: "sim/echo", stream: true, messages }, attempts: 1 },
];

const HEADER = "x-fanout-trace";

describe(HEADER, () => {
  it(
    "names the trace in which the spans of a request's calls are exported, the client's or the run's",
    { tags: ["slow"] },
    async () => {
      const { world, collector } = await worldWithCollector();
      const client = new Client();
      /** The trace that an answer names, once for each attempt of its calls. */
      const named: (string | null)[] = [];
      const runs: RunAccess[] = [];
      for (const headers of [{}, client.headers()]) {
        const run = await openRun(world, headers);
        runs.push(run);
        for (const { path, json, attempts, status = 200, accept = "*/*" } of ASKED) {
          for (const own of [{}, client.headers(), client.headers({ sampled: false })]) {
            const answer = await run.send(path, { json, headers: { ...own, accept } });
            expect([path, answer.status]).toEqual([path, status]);
            named.push(...Array.from({ length: attempts }, () => answer.headers.get(HEADER)));
          }
        }
        await close(run);
      }
      const chats = () => collector.spans().filter(({ name }) => name.startsWith("chat "));
      await vi.waitFor(() => expect(chats()).toHaveLength(named.length), { timeout: EXPORTED_MS, interval: 100 });
      expect(
        chats()
          .map(({ traceId }) => traceId)
          .toSorted(),
      ).toEqual(named.toSorted());
    },
  );

  it(
    "of a run is that of its own span, and of a group that of the request that has opened it",
    { tags: ["slow"] },
    async () => {
      const { world, collector } = await worldWithCollector();
      const client = new Client();
      const json = { default_model: "up-1", budget: { usd: 1 } };
      const traceOf = ({ headers }: { headers: Headers }): string | null => headers.get(HEADER);
      const traces: (string | null)[] = [];
      for (const headers of [{}, client.headers()]) {
        const answer = await world.sendAsOperator("/runs", { json, headers });
        const { id, token } = opened.parse(answer.json);
        const run: RunAccess = { id, token, send: (path, request) => world.send(path, { token, ...request }) };
        const batch = { json: { prompts: ["a", "b"] } };
        const key = { "idempotency-key": "k", prefer: "respond-async" };
        const first = await run.send("/batch", { ...batch, headers: { ...client.headers(), ...key } });
        const again = await run.send("/batch", { ...batch, headers: { ...client.headers(), ...key } });
        const ndjson = { headers: { accept: "application/x-ndjson" } };
        const results = await run.send(`${first.headers.get("location")}/results`, ndjson);
        expect([again, results].map(traceOf)).toEqual([traceOf(first), traceOf(first)]);
        expect([...client.spans.values()]).toContain(traceOf(first));
        // The operator names the run; only the run's object knows in which trace its spans are.
        const asOperator = { ...batch, headers: { "x-fanout-run": id } };
        expect(traceOf(await world.sendAsOperator("/batch", asOperator))).toBe(traceOf(answer));
        const single = { json: { prompt: "of the operator" }, headers: { "x-fanout-run": id } };
        expect(traceOf(await world.sendAsOperator("/query", single))).toBeNull();
        // It asks for no call.
        expect(traceOf(await run.send("/budget"))).toBeNull();
        traces.push(traceOf(answer));
        await close(run);
      }
      const exportedRuns = () => collector.spans().filter(({ name }) => name === "run");
      await vi.waitFor(() => expect(exportedRuns()).toHaveLength(2), { timeout: EXPORTED_MS, interval: 100 });
      expect(
        exportedRuns()
          .map(({ traceId }) => traceId)
          .toSorted(),
      ).toEqual(traces.toSorted());
    },
  );

  it("is absent if runs are not exported", { tags: ["slow"] }, async () => {
    const world = await startWorld();
    onTestFinished(() => world.stop());
    const client = new Client();
    const run = await openRun(world, client.headers());
    for (const { path, json } of ASKED) {
      const { headers } = await run.send(path, { json, headers: client.headers() });
      expect([path, headers.get(HEADER)]).toEqual([path, null]);
    }
  });
});

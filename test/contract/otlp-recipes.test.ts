/**
 * The guide's configurations for services that take traces, each against a stand-in that takes what its service documents: the path,
 * the headers and the encoding, and nothing else. What the stand-in counts is what the run's ledger has.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { parseEnv } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { blocksOf } from "../docs/blocks.ts";
import { attributeOf, spansIn, type OtlpSpan } from "../support/collector.ts";
import { reportLeftOut } from "../support/left-out.ts";
import { jsonOfProtobuf, OTLP_MODULE } from "../support/otlp-parser.ts";
import { missingPackage } from "../support/python-packages.ts";
import { documentOf, startWorld } from "./world.ts";

const missing = missingPackage(OTLP_MODULE);
reportLeftOut("the configurations for services that take traces", missing);

/** Long, for a machine that is busy: an export is due after five seconds. */
const EXPORTED_MS = 60_000;

const GUIDE = readFileSync(new URL("../../docs/traces.md", import.meta.url), "utf8");
const JSON_TYPE = "application/json";
const PROTOBUF = "application/x-protobuf";

/** What a service documents of its wire. */
type Service = {
  name: string;
  origin: string;
  path: string;
  /** The content types that it takes; any other is answered with 415. */
  types: readonly string[];
  /** Headers that it demands; a request without them is answered with 401. */
  headers: Readonly<Record<string, RegExp>>;
};

const SERVICES: readonly Service[] = [
  {
    name: "Langfuse",
    origin: "https://cloud.langfuse.com",
    path: "/api/public/otel/v1/traces",
    types: [JSON_TYPE, PROTOBUF],
    headers: { authorization: /^Basic \S+$/, "x-langfuse-ingestion-version": /^4$/ },
  },
  {
    name: "Phoenix",
    origin: "http://127.0.0.1:6006",
    path: "/v1/traces",
    types: [PROTOBUF],
    headers: { authorization: /^Bearer \S+$/ },
  },
  {
    name: "Braintrust",
    origin: "https://api.braintrust.dev",
    path: "/otel/v1/traces",
    types: [JSON_TYPE, PROTOBUF],
    headers: { authorization: /^Bearer \S+$/, "x-bt-parent": /^project_(name|id):\S+$/ },
  },
  {
    name: "Logfire",
    origin: "https://logfire-us.pydantic.dev",
    path: "/v1/traces",
    types: [JSON_TYPE, PROTOBUF],
    headers: { authorization: /^[\w-]+$/ },
  },
];

/** The block below the heading of a service. */
function variablesOf({ name }: Service): Record<string, string> {
  const section = GUIDE.split(`\n### ${name}\n`)[1] ?? expect.fail(`the guide has no section ${name}`);
  const [block] = blocksOf(section);
  const variables = parseEnv((block?.code ?? "").replaceAll("…", "a-key"));
  return Object.fromEntries(Object.entries(variables).map(([variable, value]) => [variable, value ?? ""]));
}

type StandIn = { origin: string; refusals: number[]; spans: () => OtlpSpan[] };

async function startStandIn(service: Service): Promise<StandIn> {
  const refusals: number[] = [];
  const bodies: { type: string; body: Buffer }[] = [];
  const server = createServer((request, reply) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const status = statusOf(service, request.url ?? "", request.headers);
      if (status === 200) bodies.push({ type: request.headers["content-type"] ?? "", body: Buffer.concat(chunks) });
      else refusals.push(status);
      reply.writeHead(status).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the stand-in has no port");
  const spans = () => {
    const ofType = (wanted: string) => bodies.flatMap(({ type, body }) => (type === wanted ? [body] : []));
    const read = ofType(PROTOBUF);
    const texts = [...ofType(JSON_TYPE).map(String), ...(read.length === 0 ? [] : jsonOfProtobuf(read))];
    return texts.flatMap(spansIn);
  };
  return { origin: `http://127.0.0.1:${address.port}`, refusals, spans };
}

function statusOf({ path, types, headers }: Service, asked: string, sent: IncomingHttpHeaders): number {
  if (asked !== path) return 404;
  const isKnown = Object.entries(headers).every(([name, form]) => form.test(String(sent[name] ?? "")));
  if (!isKnown) return 401;
  return types.includes(sent["content-type"] ?? "") ? 200 : 415;
}

describe.each(SERVICES)("$name", (service) => {
  it.skipIf(missing !== null)(
    "takes what its block sends, and counts the tokens of the ledger",
    { tags: ["slow"] },
    async () => {
      const standIn = await startStandIn(service);
      const { OTLP_ENDPOINT: endpoint = "", ...others } = variablesOf(service);
      expect(new URL(endpoint).origin).toBe(service.origin);
      const world = await startWorld(undefined, {
        ...others,
        OTLP_ENDPOINT: endpoint.replace(service.origin, standIn.origin),
      });
      onTestFinished(() => world.stop());
      const run = await world.openRun({ default_model: "up-1", budget: { usd: 1 } });
      await run.send("/batch", { json: { prompts: ["one", "two, which is longer", "{{status/400}} refused"] } });
      await run.send("/query", { json: { prompt: "single" } });
      const messages = [{ role: "user", content: "a stream" }];
      await run.send("/v1/chat/completions", { json: { model: "sim/echo", stream: true, messages } });
      await run.send(`/runs/${run.id}/close`, { method: "POST" });
      const isWhole = () => expect(standIn.spans().some(({ name }) => name === "run")).toBe(true);
      await vi.waitFor(isWhole, { timeout: EXPORTED_MS, interval: 500 });

      expect(standIn.refusals).toEqual([]);
      const sum = (key: string) =>
        standIn.spans().reduce((total, span) => total + Number(attributeOf(span, key) ?? 0), 0);
      const { budget } = await documentOf(run);
      expect(sum("gen_ai.usage.input_tokens")).toBe(budget.prompt_tokens.spent);
      expect(sum("gen_ai.usage.output_tokens")).toBe(budget.completion_tokens.spent);
      expect(budget.prompt_tokens.spent).toBeGreaterThan(0);
    },
  );
});

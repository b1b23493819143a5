/** A collector of traces that reads OTLP/HTTP JSON strictly: a field that the protocol does not have, or of a wrong type, is a fault. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { z } from "zod";

const traceId = z.string().regex(/^(?!0{32})[0-9a-f]{32}$/);
const spanId = z.string().regex(/^(?!0{16})[0-9a-f]{16}$/);
const int64 = z.string().regex(/^-?(0|[1-9]\d*)$/);
const stringValue = z.strictObject({ stringValue: z.string() });
const value = z.union([
  stringValue,
  z.strictObject({ boolValue: z.boolean() }),
  z.strictObject({ intValue: int64 }),
  z.strictObject({ doubleValue: z.number() }),
  z.strictObject({ arrayValue: z.strictObject({ values: z.array(stringValue) }) }),
]);
const attributes = z.array(z.strictObject({ key: z.string().min(1), value }));
const span = z.strictObject({
  traceId,
  spanId,
  parentSpanId: spanId.optional(),
  traceState: z.string().optional(),
  name: z.string().min(1),
  kind: z.number().int().min(1).max(5),
  startTimeUnixNano: int64,
  endTimeUnixNano: int64,
  attributes,
  links: z.array(z.strictObject({ traceId, spanId, traceState: z.string().optional() })).optional(),
  status: z.strictObject({ code: z.number().int().min(0).max(2).optional(), message: z.string().optional() }),
});

/** The body of `POST /v1/traces`, as opentelemetry-proto's ExportTraceServiceRequest. */
const otlpRequest = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.array(
        z.strictObject({ scope: z.strictObject({ name: z.string(), version: z.string() }), spans: z.array(span) }),
      ),
    }),
  ),
});

export type OtlpSpan = z.infer<typeof span>;

/** All spans of a request. Throws unless it is one. */
export function spansIn(body: string): OtlpSpan[] {
  const { resourceSpans } = otlpRequest.parse(JSON.parse(body));
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

/** The value of a span's attribute; undefined = it has none. */
export function attributeOf({ attributes: all }: OtlpSpan, key: string): unknown {
  const found = all.find((attribute) => attribute.key === key);
  return found === undefined ? undefined : Object.values(found.value)[0];
}

export type Post = { path: string; headers: IncomingHttpHeaders; body: string };

export type Collector = {
  url: string;
  /** Requests that arrived, whatever their answer. */
  posts: Post[];
  /** The most requests that were open at once: begun, and neither answered nor closed by their sender. */
  readonly peakOpen: number;
  /** The spans of the requests that were accepted. */
  spans: () => OtlpSpan[];
  stop: () => Promise<void>;
};

/** Starts a collector. `answer`: the status of the request of this number, from 0; null = it never answers. */
export async function startCollector(answer: (at: number) => number | null = () => 200): Promise<Collector> {
  const posts: Post[] = [];
  const accepted: Post[] = [];
  const open = new Set<ServerResponse>();
  let peakOpen = 0;
  const server = createServer((request, reply) => {
    let body = "";
    open.add(reply);
    peakOpen = Math.max(peakOpen, open.size);
    reply.on("close", () => open.delete(reply));
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const post = { path: request.url ?? "", headers: request.headers, body };
      const status = answer(posts.length);
      posts.push(post);
      if (status === null) return;
      if (status < 300) accepted.push(post);
      reply.writeHead(status, { "content-type": "application/json", location: "/elsewhere" });
      reply.end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the collector has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    posts,
    get peakOpen() {
      return peakOpen;
    },
    spans: () => accepted.flatMap(({ body }) => spansIn(body)),
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

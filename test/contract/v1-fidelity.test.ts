/** What passes through /v1 stays as it was, byte for byte, but for what the contract lists. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bodies, CHAT, clientSide, upstreamSide, type Shape } from "./v1-shapes.ts";
import { passedStreams, streams } from "./v1-stream-shapes.ts";
import { post, PROVIDER_KEY, startV1, type V1World } from "./v1-world.ts";

let world: V1World;
let token: string;
/** The same gateway, but with upstreams whose streams are all edited. */
let editing: { world: V1World; token: string };

async function start(fields: Record<string, unknown>): Promise<typeof editing> {
  const world = await startV1(fields);
  const { token } = await world.gateway.openRun({ max_parallel: 0 });
  return { world, token };
}

beforeAll(async () => {
  ({ world, token } = await start({}));
  editing = await start({ stream_usage: "edit" });
});
beforeEach(() => {
  world.upstream.forget();
  editing.world.upstream.forget();
});
afterAll(async () => {
  await world.stop();
  await editing.world.stop();
});

const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** How an answer's bytes come: whole, or in chunks of these sizes, over and over. */
const FRAMINGS: Record<string, readonly number[] | null> = {
  "as one": null,
  "byte by byte": [1],
  "in odd chunks": [7, 1, 64, 3, 2, 500, 11],
};

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0, round = 0; at < bytes.length; round++) {
    const size = sizes[round % sizes.length] ?? 1;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

function serve({ answer, events }: Shape, sizes: readonly number[] | null, { upstream } = world): void {
  const bytes = Buffer.from(upstreamSide(answer));
  const headers = { "content-type": events ? "text/event-stream" : "application/json" };
  upstream.serve(async (_, reply) => {
    if (sizes === null && !events) return reply.whole(bytes, { headers });
    reply.begin({ headers });
    for (const chunk of sizes === null ? [bytes] : cut(bytes, sizes)) await reply.write(chunk);
    reply.end();
  });
}

async function exchange(
  { path, request, budget }: Shape,
  at = { world, token },
): Promise<{ asked: Buffer; got: Buffer; ended: boolean }> {
  const { gateway, upstream } = at.world;
  const { token: own } = budget === undefined ? at : await gateway.openRun({ budget });
  const { bytes, ended } = await post(gateway, path, own, clientSide(request)).body;
  const [call, ...more] = upstream.calls;
  expect(more).toEqual([]);
  return { asked: call?.body ?? Buffer.alloc(0), got: bytes, ended };
}

const CASES = [
  ...[...bodies, ...passedStreams].map((shape) => ({ name: shape.name, shape, isEdited: false })),
  ...streams.map((shape) => ({ name: `${shape.name}, edited`, shape, isEdited: true })),
];

describe.each(Object.entries(FRAMINGS))("an answer that arrives %s", (_, sizes) => {
  it.each(CASES)("$name", { tags: ["slow"] }, async ({ shape, isEdited }) => {
    const at = isEdited ? editing : { world, token };
    serve(shape, sizes, at.world);
    const { asked, got, ended } = await exchange(shape, at);
    // The texts first, for they show what differs.
    expect(asked.toString()).toBe(upstreamSide(shape.request));
    expect(got.toString()).toBe(clientSide(shape.answer));
    expect(ended).toBe(true);
    expect(sha256(asked)).toBe(sha256(upstreamSide(shape.request)));
    expect(sha256(got)).toBe(sha256(clientSide(shape.answer)));
  });
});

it("the tests have more than 40 distinct shapes of answers", () => {
  const all = [...bodies, ...streams];
  expect(all.length).toBeGreaterThanOrEqual(40);
  expect(new Set(all.map(({ request, answer }) => request + answer)).size).toBe(all.length);
});

describe("however it is transferred,", () => {
  const [shape] = bodies;

  it("a compressed answer arrives decompressed and unchanged", async () => {
    const packed = gzipSync(upstreamSide(CHAT));
    for (const chunked of [false, true]) {
      world.upstream.forget();
      world.upstream.serve(async (_, reply) => {
        const headers = { "content-encoding": "gzip" };
        if (!chunked) return reply.whole(packed, { headers });
        reply.begin({ headers });
        for (const chunk of cut(packed, [50])) await reply.write(chunk);
        reply.end();
      });
      expect(shape && (await exchange(shape)).got.toString()).toBe(clientSide(CHAT));
    }
  });

  it("an answer of 8 MB arrives whole, chunked or with content-length", { tags: ["slow"] }, async () => {
    const long = CHAT.replace('"ok"', `"${"é🦊\\u00e9 ".repeat(600_000)}"`);
    const large: Shape = {
      name: "",
      path: "/v1/chat/completions",
      request: '{"model":"up-1","messages":[]}',
      answer: long,
    };
    for (const sizes of [null, [65_536, 1, 100_000]]) {
      world.upstream.forget();
      serve(large, sizes);
      const { got, ended } = await exchange(large);
      expect([got.length, ended]).toEqual([Buffer.byteLength(clientSide(long)), true]);
      expect(sha256(got)).toBe(sha256(clientSide(long)));
    }
  });

  it("a request of 4 MB arrives whole", async () => {
    const content = "é🦊\\u00e9 ".repeat(300_000);
    const request = `{"model":"⟦up/⟧up-1","messages":[{"role":"user","content":"${content}"}],"seed":12345678901234567890}`;
    const large: Shape = { name: "", path: "/v1/chat/completions", request, answer: CHAT };
    serve(large, null);
    expect(sha256((await exchange(large)).asked)).toBe(sha256(upstreamSide(request)));
  });
});

describe("an upstream's error", () => {
  const ERROR = '{ "error": {"message":"h\\u00e9","type":"t","param":null,"code":"c","x":12345678901234567890}}\r\n';

  it.each([400, 404, 409, 422, 429, 500, 503, 529])("of status %i keeps its status and every byte", async (status) => {
    world.upstream.serve((_, reply) =>
      reply.whole(ERROR, { status, headers: { "x-ratelimit-limit-requests": "60", "retry-after": "1" } }),
    );
    const request = '{"model":"once/x","messages":[]}';
    const asked = post(world.gateway, "/v1/chat/completions", token, request);
    const { statusCode, headers } = await asked.response;
    expect([statusCode, (await asked.body).bytes.toString()]).toEqual([status, ERROR]);
    expect(headers["x-ratelimit-limit-requests"]).toBe("60");
    expect([headers["x-should-retry"], headers["x-fanout-attempts"], headers["x-fanout-charged-usd"]]).toEqual([
      ...["false", "1", "0"],
    ]);
    if (status === 429 || status === 503)
      expect([headers["retry-after"], headers["retry-after-ms"]]).toEqual(["1", "1000"]);
  });

  it("of status 503 without retry-after gets one", { tags: ["slow"] }, async () => {
    world.upstream.serve((_, reply) => reply.whole(ERROR, { status: 503 }));
    const { headers } = await post(world.gateway, "/v1/chat/completions", token, '{"model":"once/x","messages":[]}')
      .response;
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(Number(headers["retry-after-ms"])).toBeGreaterThan(0);
  });

  it.each([400, 404, 500])(
    "of status %i without a body keeps its status and gets a body that explains it",
    async (status) => {
      world.upstream.serve((_, reply) => reply.whole("", { status }));
      const asked = post(world.gateway, "/v1/chat/completions", token, '{"model":"once/x","messages":[]}');
      expect((await asked.response).statusCode).toBe(status);
      expect(JSON.parse((await asked.body).bytes.toString())).toMatchObject({
        error: { message: expect.stringContaining(String(status)), code: "upstream_error", param: null },
      });
    },
  );

  const PAGES: [string, { status: number; headers: Record<string, string> }][] = [
    ["<html><title>502 Bad Gateway</title></html>", { status: 502, headers: { "content-type": "text/html" } }],
    ["upstream connect error", { status: 503, headers: { "content-type": "text/plain" } }],
    ['{"error": {"message": "cut', { status: 500, headers: { "content-type": "application/json" } }],
  ];
  const shown = z.looseObject({ type: z.string().optional(), error: z.looseObject({ message: z.string() }) });

  it.each(PAGES)(
    "that is no JSON, as %s, has the form that its client parses",
    { tags: ["slow"] },
    async (page, init) => {
      world.upstream.serve((_, reply) => reply.whole(page, init));
      for (const [path, model] of [
        ["/v1/chat/completions", "once/m"],
        ["/v1/responses", "once/m"],
        ["/v1/messages", "claude-1"],
      ] as const) {
        const input = path === "/v1/responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }] };
        const asked = post(world.gateway, path, token, JSON.stringify({ model, max_tokens: 5, ...input }));
        const { statusCode, headers } = await asked.response;
        expect([path, statusCode, headers["content-type"]]).toEqual([path, init.status, "application/json"]);
        const answer = shown.parse(JSON.parse((await asked.body).bytes.toString()));
        expect(answer.error.message).toContain(String(init.status));
        expect(answer.type).toBe(path === "/v1/messages" ? "error" : undefined);
      }
    },
  );

  it.each([401, 403])("of status %i that mentions the gateway's key becomes the gateway's 502", async (status) => {
    world.upstream.serve((_, reply) => reply.whole(`{"error":{"message":"bad ${PROVIDER_KEY}"}}`, { status }));
    const asked = post(world.gateway, "/v1/chat/completions", token, '{"model":"once/x","messages":[]}');
    expect((await asked.response).statusCode).toBe(502);
    const text = (await asked.body).bytes.toString();
    expect(text).not.toContain(PROVIDER_KEY);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "upstream_error", status } });
  });
});

/** An answer that ends in the middle of its JSON is never a clean 200, however the upstream framed it. */
import { constants, gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ByteHandler, ByteReply } from "../support/byte-upstream.ts";
import { logOf, post, startV1, type V1World } from "./v1-world.ts";

let world: V1World;
beforeAll(async () => void (world = await startV1({ max_attempts: 1 })));
afterAll(() => world.stop());

const ANSWER = Buffer.from(
  '{"id":"c","object":"chat.completion","model":"up-1","choices":[{"index":0,"message":{"role":"assistant","content":"h\\u00e9 😀"},"finish_reason":"stop"}]}',
);
const PACKED = gzipSync(ANSWER);
const GZIP = { "content-encoding": "gzip" };

type Framing = { bytes: Buffer; serve: (reply: ByteReply, half: Buffer) => unknown };

async function inChunks(reply: ByteReply, half: Buffer, headers = {}): Promise<void> {
  reply.begin({ headers });
  const middle = half.length >> 1;
  for (const chunk of [half.subarray(0, middle), half.subarray(middle)]) if (chunk.length > 0) await reply.write(chunk);
  reply.end();
}

const FRAMINGS: Record<string, Framing> = {
  "in chunks": { bytes: ANSWER, serve: (reply, half) => inChunks(reply, half) },
  "with the length of its half": { bytes: ANSWER, serve: (reply, half) => reply.whole(half) },
  "with the length of the whole": {
    bytes: ANSWER,
    serve: async (reply, half) => {
      reply.begin({ headers: { "content-length": String(ANSWER.length) } });
      if (half.length > 0) await reply.write(half);
      reply.reset();
    },
  },
  "compressed in chunks": { bytes: PACKED, serve: (reply, half) => inChunks(reply, half, GZIP) },
  "compressed with the length of its half": {
    bytes: PACKED,
    serve: (reply, half) => reply.whole(half, { headers: GZIP }),
  },
  "cut before it was compressed": {
    bytes: ANSWER,
    serve: (reply, half) => reply.whole(gzipSync(half), { headers: GZIP }),
  },
};

/** Whether all of the answer is there: the last bytes of a compressed one hold nothing but its end and checksum. */
function isWhole(bytes: Buffer, at: number): boolean {
  if (bytes !== PACKED) return at === bytes.length;
  const half = bytes.subarray(0, at);
  return at > 0 && gunzipSync(half, { finishFlush: constants.Z_SYNC_FLUSH }).length === ANSWER.length;
}

describe.each(Object.entries(FRAMINGS))("an answer that arrives %s", (_, { bytes, serve }) => {
  it(
    "never looks like a clean 200, wherever it is cut, and its attempt stays charged as truncated",
    { tags: ["slow"] },
    async () => {
      const run = await world.gateway.openRun({ max_parallel: 0 });
      const asked = Array.from(bytes.keys()).filter((at) => !isWhole(bytes, at));
      expect(asked.length).toBeGreaterThan(100);
      const handler: ByteHandler = async ({ body }, reply) => {
        const { seed } = JSON.parse(body.toString());
        await serve(reply, bytes.subarray(0, seed));
      };
      world.upstream.serve(handler);
      const wrong: number[] = [];
      for (let from = 0; from < asked.length; from += 16) {
        await Promise.all(
          asked.slice(from, from + 16).map(async (at) => {
            const request = `{"model":"up-1","messages":[{"role":"user","content":"q"}],"seed":${at}}`;
            const call = post(world.gateway, "/v1/chat/completions", run.token, request);
            // The connection may break off before its status line has gone out.
            const status = await call.response.then(
              ({ statusCode }) => statusCode,
              () => 200,
            );
            const { ended } = await call.body;
            if (status === 200 ? ended : status !== 502) wrong.push(at);
          }),
        );
      }
      expect(wrong).toEqual([]);
      const attempts = async () =>
        (await logOf(world.gateway, run)).filter(({ event_type }) => event_type === "attempt_ended");
      await expect.poll(async () => (await attempts()).length).toBe(asked.length);
      for (const line of await attempts()) {
        expect(line).toMatchObject({ outcome: "unknown", code: "upstream_truncated", estimated: true });
      }
    },
  );
});

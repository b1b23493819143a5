/**
 * The whole message of a call that its hedge has answered is what `/v1` returns for the same call. The first attempt of that call is
 * never answered, so which of the two wins does not depend on time.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { SPEAKERS, wireOf } from "../support/speakers.ts";
import { expectSame, viaV1, withMessage } from "./message-world.ts";
import { answerOf, type RunAccess } from "./world.ts";

const FORMS = ["json", "stream"] as const;
/** The second attempt of a call may cost as much as the other call of its batch. */
const HEDGE = { after: 20, max_extra: 1 };
const LATE = "a late one";

let upstream: ByteUpstream;
let gateway: Gateway;

const request = z.looseObject({ stream: z.boolean().optional() });
/** Requests of the call that is late. */
const lateCalls = (name: string, isStream: boolean) =>
  upstream.calls.filter(({ path, body }) => {
    const text = body.toString();
    return (
      path.split("/")[1] === name &&
      text.includes(LATE) &&
      (request.parse(JSON.parse(text)).stream ?? false) === isStream
    );
  });

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve(({ path, body }, reply) => {
    const speaker = SPEAKERS.find(({ name }) => path.split("/")[1] === name);
    if (speaker === undefined) return reply.whole("{}", { status: 404 });
    const isStream = request.parse(JSON.parse(body.toString())).stream ?? false;
    if (body.toString().includes(LATE) && lateCalls(speaker.name, isStream).length === 1) return;
    if (!isStream) return reply.whole(speaker.body);
    return reply.whole(wireOf(speaker), { headers: { "content-type": "text/event-stream" } });
  });
  const UPSTREAMS = Object.fromEntries(
    SPEAKERS.flatMap(({ name, kind }) =>
      FORMS.map((form): [string, object] => {
        const base_url = `${upstream.origin}/${name}${kind === "openai" ? "/v1" : ""}`;
        // Prompts cost next to nothing, so that one answer pays for the reservation of a hedge.
        return [`${name}-${form}`, { kind, base_url, prices: { "*": { input: 0.001, output: 1 } }, aggregate: form }];
      }),
    ),
  );
  gateway = await startGateway({ vars: { ADMIN_KEY: randomUUID(), UPSTREAMS, DEFAULT_MODEL: "deepseek-json/m" } });
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

async function openRun(): Promise<RunAccess> {
  const { id, token } = await gateway.openRun({ budget: { usd: 1 } });
  return { id, token, send: async (path, sent) => answerOf(await gateway.fetch(path, { token, ...sent })) };
}

const hedged = z.object({ items: z.tuple([withMessage, withMessage.extend({ attempts: z.literal(2) })]) });

describe("the message of a call that its hedge has answered", () => {
  it.each(SPEAKERS.map((speaker) => [speaker.name, speaker] as const))(
    "is that of /v1 at %s",
    async (name, speaker) => {
      const run = await openRun();
      const expected = await viaV1(run, speaker);
      for (const form of FORMS) {
        const json = { prompts: ["one on time", LATE], model: `${name}-${form}/m`, max_tokens: 1, hedge: HEDGE };
        const { items } = hedged.parse((await run.send("/batch", { json })).json);
        expectSame(speaker, items[1].message, expected, form);
        const [first, second, ...more] = lateCalls(name, form === "stream");
        expect([second === undefined, more]).toEqual([false, []]);
        await expect.poll(() => first?.leftAtMs ?? null).not.toBeNull();
      }
    },
  );
});

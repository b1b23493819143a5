/** Images under a limit: bounded by their own sizes, and by the largest of their model's family where no size is known. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startByteUpstream, type ByteUpstream } from "../support/byte-upstream.ts";
import { startGateway, type Gateway } from "../support/gateway.ts";
import { FAMILIES, type Bills } from "../support/image-billing.ts";
import { dataUrl, fileOf, HOSTILE, jpeg, NO_IMAGES, png, type Size } from "../support/images.ts";
import { answerOf, errorOf, replyOf } from "./world.ts";

/** By the URL of an image, the size that the provider finds in it. */
const SEEN = new Map<string, Size>();
const remember = (url: string, size: Size): string => {
  SEEN.set(url, size);
  return url;
};
const PHOTO = remember(dataUrl("jpeg", jpeg([1_280, 720], { profiles: 2 })), [1_280, 720]);
const REMOTE = "https://pictures.example/a.png";
const LIE = remember(dataUrl("png", png([3, 3])), [9_000, 9_000]);

const TEXT_TOKENS = 40;
const MAX_TOKENS = 16;

let upstream: ByteUpstream;
let gateway: Gateway;

const parts = z.array(z.looseObject({ type: z.string(), image_url: z.looseObject({ url: z.string() }).optional() }));
const request = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ content: z.union([z.string(), parts]) })),
});

/** What the provider of a model bills for the images of a request. */
function billOf(text: string): number {
  const { model, messages } = request.parse(JSON.parse(text));
  const family = FAMILIES.find((each) => each.model === model);
  const urls = messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap(({ image_url: image }) => (image === undefined ? [] : [image.url])),
  );
  return urls.reduce((sum, url) => sum + tokensOf(family, url), TEXT_TOKENS);
}

function tokensOf(family: Bills | undefined, url: string): number {
  if (family !== undefined && url === REMOTE) return family.largest;
  const size = SEEN.get(url);
  if (family === undefined || size === undefined) throw new Error(`an image that nobody sent: ${url.slice(0, 60)}`);
  return Math.min(family.largest, family.tokens(size));
}

beforeAll(async () => {
  upstream = await startByteUpstream();
  upstream.serve(({ body }, reply) => {
    const usage = { prompt_tokens: billOf(body.toString("utf8")), completion_tokens: 2 };
    const message = { role: "assistant", content: "A cat." };
    const answer = { id: "c", object: "chat.completion", model: "m", choices: [{ index: 0, message }], usage };
    reply.whole(JSON.stringify(answer), { headers: { "content-type": "application/json" } });
  });
  const own = {
    kind: "openai",
    base_url: `${upstream.origin}/v1`,
    models: ["*"],
    prices: { "*": { input: 1, output: 1 } },
  };
  gateway = await startGateway({ vars: { UPSTREAMS: { see: own, other: own }, DEFAULT_MODEL: "see/gpt-4o" } });
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

const messagesOf = (...urls: string[]) => [
  {
    role: "user",
    content: [{ type: "text", text: "What is it?" }, ...urls.map((url) => ({ type: "image_url", image_url: { url } }))],
  },
];

async function ask(access: { token: string }, model: string, urls: string[], path = "/query") {
  const json = { model, messages: messagesOf(...urls), max_tokens: MAX_TOKENS };
  return answerOf(await gateway.fetch(path, { token: access.token, json }));
}

const budget = z.looseObject({
  prompt_tokens: z.looseObject({ spent: z.number(), limit: z.number().nullable() }),
});

async function spentOf(access: { token: string }): Promise<number> {
  return budget.parse((await answerOf(await gateway.fetch("/budget", { token: access.token }))).json).prompt_tokens
    .spent;
}

describe("an image under a limit", () => {
  it.each(FAMILIES)("is sent to $name without a setting, and billed within its reservation", async (family) => {
    const model = `see/${family.model}`;
    // The bytes of the text count, and a template that was not seen yet.
    const access = await gateway.openRun({ budget: { prompt_tokens: 2 * family.tokens([1_280, 720]) + 5_000 } });
    const answer = await ask(access, model, [PHOTO]);
    expect(replyOf(answer).usage.prompt_tokens).toBe(TEXT_TOKENS + family.tokens([1_280, 720]));
    expect(await spentOf(access)).toBe(TEXT_TOKENS + family.tokens([1_280, 720]));
    const relayed = await ask(access, model, [PHOTO], "/v1/chat/completions");
    expect(relayed.status).toBe(200);
  });

  it.each(FAMILIES)("that is elsewhere counts as the largest of $name", async (family) => {
    const model = `see/${family.model}`;
    const small = await gateway.openRun({ budget: { prompt_tokens: family.largest } });
    expect((await ask(small, model, [REMOTE])).status).toBe(402);
    const large = await gateway.openRun({ budget: { prompt_tokens: 2 * family.largest + 5_000 } });
    expect(replyOf(await ask(large, model, [REMOTE])).usage.prompt_tokens).toBe(TEXT_TOKENS + family.largest);
  });

  it("of a model without a family is refused, and names the setting", async () => {
    const access = await gateway.openRun({ budget: { usd: 1 } });
    const refused = await ask(access, "see/my-own-model", [PHOTO]);
    expect([refused.status, errorOf(refused).code]).toEqual([422, "infeasible"]);
    expect(errorOf(refused).message).toContain("media_tokens_max");
  });

  it.each(NO_IMAGES)("that is $name is refused as a file", async ({ url }) => {
    const access = await gateway.openRun({ budget: { usd: 1 } });
    const refused = await ask(access, "see/gemini-2.5-flash", [url]);
    expect([refused.status, errorOf(refused).code]).toEqual([422, "infeasible"]);
    expect(errorOf(refused).message).toContain("file_tokens_max");
  });

  it("counts as the largest of its family if its header cannot be believed", async () => {
    const [family] = FAMILIES;
    if (family === undefined) throw new Error("no family");
    for (const { name, type, data, seen } of HOSTILE) {
      const url = remember(dataUrl(type, data), seen);
      const access = await gateway.openRun({ budget: { prompt_tokens: family.largest + 10 } });
      expect((await ask(access, `see/${family.model}`, [url])).status, name).toBe(402);
    }
  });

  it("in many sizes is part of a batch like any other", async () => {
    const model = "see/claude-opus-4-8";
    const urls = [
      [640, 480],
      [300, 250],
      [1_080, 1_920],
    ].map(([width = 1, height = 1], turn) => remember(fileOf([width, height], turn), [width, height]));
    const access = await gateway.openRun({ budget: { usd: 0.05, prompt_tokens: 40_000 } });
    const items = urls.map((url) => ({ messages: messagesOf(url) }));
    const json = { model, items, max_tokens: MAX_TOKENS };
    const answer = await answerOf(await gateway.fetch("/batch", { token: access.token, json }));
    const { status } = z.looseObject({ status: z.string() }).parse(answer.json);
    expect(status).toBe("completed");
  });
});

describe("an image whose header is below the truth", () => {
  it("makes one call exceed its reservation, and then every image of that model counts as the largest", async () => {
    const family = FAMILIES.find(({ name }) => name === "Anthropic");
    if (family === undefined) throw new Error("no family");
    const model = `other/${family.model}`;
    const access = await gateway.openRun({ budget: { prompt_tokens: 100_000 } });
    for (let turn = 0; turn < 3; turn++) expect((await ask(access, model, [LIE])).status).toBe(200);
    const log = await (await gateway.fetch(`/runs/${access.id}/log`, { token: access.token })).text();
    expect(log.split("\n").filter((line) => line.includes('"overrun"')).length).toBe(1);
    // A second tree sees it too; a third believes them, and refuses what it would have believed.
    const second = await gateway.openRun({ budget: { prompt_tokens: 100_000 } });
    expect((await ask(second, model, [LIE])).status).toBe(200);
    await expect
      .poll(async () => {
        const third = await gateway.openRun({ budget: { prompt_tokens: family.largest } });
        return (await ask(third, model, [LIE])).status;
      })
      .toBe(402);
  });
});

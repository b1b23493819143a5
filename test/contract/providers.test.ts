/** Each provider of docs/providers.md, as its block configures it, against a server that speaks its documented wire. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { causeOf } from "../../src/run/gates/cause.ts";
import { providerAt } from "../../src/run/money/prices.ts";
import { classify } from "../../src/providers/classify.ts";
import type { Upstream } from "../../src/providers/config/types.ts";
import { parseUpstreams } from "../../src/providers/upstreams.ts";
import { startGateway, type Gateway, type OpenedRun } from "../support/gateway.ts";
import { PERSONALITIES, type Personality } from "../support/providers/personalities.ts";
import { AWS_KEY, PRICE, ProviderServer, RIGHT_KEY } from "../support/providers/server.ts";
import { budgetOf, logOf } from "./v1-world.ts";

const PAGE = new URL("../../docs/providers.md", import.meta.url);
const entry = z.looseObject({ base_url: z.string(), api_key: z.string().optional(), kind: z.string() });
const chatAnswer = z.looseObject({
  text: z.string(),
  finish_reason: z.string().nullable(),
  attempts: z.int(),
  usage: z.unknown(),
});
const failure = z.object({ error: z.looseObject({ message: z.string(), code: z.string() }) });
const toolAnswer = z.looseObject({
  choices: z.array(
    z.looseObject({
      message: z.looseObject({ tool_calls: z.array(z.looseObject({ function: z.object({ arguments: z.string() }) })) }),
    }),
  ),
});
const toolMessage = z.looseObject({ content: z.array(z.looseObject({ input: z.unknown() })) });

/** The rows of the page's table, and the block below the heading of each. */
async function rowsOf(): Promise<{ title: string; inCatalogue: string; name: string; block: z.infer<typeof entry> }[]> {
  const page = await readFile(PAGE, "utf8");
  const rows = [...page.matchAll(/^\| \[([^\]]+)\]\(https:[^)]+\) \|(?:[^|]*\|){3} (yes|no) \|/gm)];
  return rows.map(([, title = "", inCatalogue = ""]) => {
    const section = page.split(`\n## ${title}\n`)[1]?.split("\n## ")[0] ?? "";
    const code = /```json UPSTREAMS\n(.*?)```/s.exec(section)?.[1] ?? "{}";
    const [[name, block] = ["", {}]] = Object.entries(z.record(z.string(), z.unknown()).parse(JSON.parse(code)));
    return { title, inCatalogue, name, block: entry.parse(block) };
  });
}

const SECRETS = {
  AI_GATEWAY_AUTHORIZATION: "Bearer aig-token-0123456789",
  AWS_CREDENTIALS: `${AWS_KEY.id}:${AWS_KEY.secret}`,
};
const server = new ProviderServer();
let rows: Awaited<ReturnType<typeof rowsOf>>;
let stopServer: () => Promise<void>;
let gateway: Gateway;

/** The secrets that blocks name, right and wrong. */
function secretsOf(): Record<string, string> {
  const named = rows.flatMap(({ block }) =>
    [...JSON.stringify(block).matchAll(/secret:(\w+)/g)].map(([, name = ""]) => name),
  );
  const right = Object.fromEntries(named.map((name) => [name, RIGHT_KEY]));
  const wrong = Object.fromEntries(named.map((name) => [`WRONG_${name}`, "wrong-key-0123456789abcdef"]));
  return {
    ...right,
    ...wrong,
    ...SECRETS,
    GOOGLE_SERVICE_ACCOUNT: server.serviceAccount("right"),
    WRONG_GOOGLE_SERVICE_ACCOUNT: server.serviceAccount("wrong"),
    WRONG_AWS_CREDENTIALS: `${AWS_KEY.id}:another-secret-0123456789`,
  };
}

function upstreamOf({ name, block }: (typeof rows)[number]): Upstream {
  const parsed = parseUpstreams({ [name]: block }, secretsOf());
  if (!parsed.ok) throw new Error(`${parsed.path} ${parsed.message}`);
  const [upstream] = parsed.upstreams;
  if (upstream === undefined) throw new Error(`${name} names no upstream`);
  return upstream;
}

/** The block with the server in place of its host. What depends on the host is what it is at the provider's own. */
function placed(row: (typeof rows)[number], whose: "right" | "wrong"): unknown {
  const { title, block } = row;
  const url = new URL(block.base_url.replace("{model}", "MODEL"));
  const path = url.pathname.replace("MODEL", "{model}").replace(/\/$/, "");
  const capField = block.kind === "openai" ? { cap_field: upstreamOf(row).capField } : {};
  const key =
    whose === "wrong" && block.api_key !== undefined
      ? { api_key: block.api_key.replace("secret:", "secret:WRONG_") }
      : {};
  return {
    ...block,
    ...capField,
    ...key,
    base_url: `${server.hostOf(title)}${path}`,
    prices: { "*": PRICE },
    models: [],
  };
}

beforeAll(async () => {
  stopServer = await server.start();
  rows = await rowsOf();
  const UPSTREAMS = Object.fromEntries(
    rows.flatMap((row) => [
      [row.name, placed(row, "right")],
      [`${row.name}-wrong`, placed(row, "wrong")],
    ]),
  );
  gateway = await startGateway({ vars: { UPSTREAMS, DEFAULT_MODEL: "openai/m-1", ...secretsOf() } });
});
afterAll(async () => {
  await gateway.stop();
  await stopServer();
});

const SECRET_PARTS = [RIGHT_KEY, AWS_KEY.secret, "ya29.token", "PRIVATE KEY", "aig-token"];

/** Sends a request of a run and reads its answer, in which no secret may be. */
async function ask(run: OpenedRun, path: string, json: unknown): Promise<{ status: number; text: string }> {
  const answer = await gateway.fetch(path, { token: run.token, json });
  const text = await answer.text();
  for (const secret of SECRET_PARTS) expect(text).not.toContain(secret);
  return { status: answer.status, text };
}

it("is a row, a block and a personality for each of 18 providers or more", () => {
  expect(rows.length).toBeGreaterThanOrEqual(18);
  expect(rows.map(({ title }) => title)).toEqual(PERSONALITIES.map(({ title }) => title));
});

it("says whose prices the catalogue has, and which field carries the cap", async () => {
  const page = await readFile(PAGE, "utf8");
  for (const row of rows) {
    expect(providerAt(row.block.base_url) === null ? "no" : "yes", row.title).toBe(row.inCatalogue);
    const cell = new RegExp(`^\\| \\[${row.title.replaceAll(".", "\\.")}\\][^|]*\\|[^|]*\\| \`(\\w+)\``, "m").exec(
      page,
    )?.[1];
    expect(upstreamOf(row).capField, row.title).toBe(cell);
  }
});

describe.each(PERSONALITIES.map((personality) => [personality.title, personality] as const))(
  "%s",
  (title, personality) => {
    const row = () => {
      const found = rows.find((each) => each.title === title);
      if (found === undefined) throw new Error(`docs/providers.md has no row for ${title}`);
      return found;
    };
    const model = (whose = "") => `${row().name}${whose}/m-1`;

    /** Runs calls in a run of their own, whose ledger must be the provider's bill. */
    async function billed(calls: (run: OpenedRun) => Promise<void>): Promise<void> {
      const run = await gateway.openRun({ budget: { usd: 1 } });
      const before = server.bookOf(title).nanoUsd;
      await calls(run);
      const { usd } = await budgetOf(gateway, run.token);
      expect({ spent: Math.round((usd?.spent ?? 0) * 1e9), reserved: usd?.reserved }).toEqual({
        spent: server.bookOf(title).nanoUsd - before,
        reserved: 0,
      });
      const log = JSON.stringify(await logOf(gateway, run));
      for (const secret of SECRET_PARTS) expect(log).not.toContain(secret);
    }

    it("answers a chat and a stream, calls a tool, and keeps the cap, for what it bills", async () => {
      await billed(async (run) => {
        const plain = chatAnswer.parse(
          JSON.parse((await ask(run, "/query", { model: model(), prompt: "one two three" })).text),
        );
        expect(plain).toMatchObject({ text: "three two one", attempts: 1 });
        const capped = chatAnswer.parse(
          JSON.parse((await ask(run, "/query", { model: model(), prompt: "one two three", max_tokens: 2 })).text),
        );
        expect(capped).toMatchObject({
          text: "three two",
          finish_reason: "length",
        });
        await streamed(run);
        await calledTool(run);
      });
      expect(server.bookOf(title).faults).toEqual([]);
    });

    const isOpenAi = personality.protocol === "openai";
    const route = isOpenAi ? "/v1/chat/completions" : "/v1/messages";

    async function streamed(run: OpenedRun): Promise<void> {
      const messages = [{ role: "user", content: "alpha beta" }];
      const { status, text } = await ask(run, route, { model: model(), messages, max_tokens: 9, stream: true });
      expect(status, text).toBe(200);
      expect(text).toContain("beta");
      expect(text).toContain(isOpenAi ? "[DONE]" : "message_stop");
    }

    async function calledTool(run: OpenedRun): Promise<void> {
      const parameters = { type: "object", properties: { words: { type: "string" } } };
      const tools = isOpenAi
        ? [{ type: "function", function: { name: "look_up", parameters } }]
        : [{ name: "look_up", input_schema: parameters }];
      const messages = [{ role: "user", content: "red green" }];
      const { text } = await ask(run, route, { model: model(), messages, max_tokens: 9, tools });
      if (isOpenAi) {
        const [choice] = toolAnswer.parse(JSON.parse(text)).choices;
        expect(choice?.message.tool_calls[0]?.function.arguments).toBe('{"words":"green red"}');
      } else expect(toolMessage.parse(JSON.parse(text)).content[0]?.input).toEqual({ words: "green red" });
    }

    // A server that does not fail so has no such test: nothing is left out.
    const { limited, wrongKey, tooLong } = personality;

    if (limited !== null)
      it("answers a call again that it turned away, and bills it once", { tags: ["slow"] }, async () => {
        await billed(async (run) => {
          const before = server.bookOf(title).seen.length;
          const answer = await ask(run, "/query", {
            model: model(),
            prompt: "busy two",
            max_tokens: 9,
            deadline_ms: 600_000,
          });
          expect(chatAnswer.parse(JSON.parse(answer.text))).toMatchObject({ text: "two busy" });
          expect(server.bookOf(title).seen.length - before).toBe(2);
        });
      });

    if (wrongKey !== null)
      it("refuses a wrong key once, at no cost, and stops it", async () => {
        await billed(async (run) => {
          const { text } = await ask(run, "/query", { model: model("-wrong"), prompt: "hello" });
          const { error } = failure.parse(JSON.parse(text));
          expect(error.message).toContain(wrongKey.words);
        });
        const ends = classified(wrongKey);
        if (personality.refusedByTokenEndpoint !== true)
          expect(ends).toMatchObject({ class: "rejected", stop: "invalid_key" });
      });

    if (tooLong !== null)
      it("refuses a prompt that is too long once, at no cost, and says so", async () => {
        await billed(async (run) => {
          const before = server.bookOf(title).seen.length;
          const { text } = await ask(run, "/query", { model: model(), prompt: "word ".repeat(400) });
          expect(failure.parse(JSON.parse(text)).error.message).toContain(tooLong.words);
          expect(server.bookOf(title).seen.length - before).toBe(1);
        });
        const ends = classified(tooLong);
        if (ends.kind !== "failure") throw new Error("a refusal is a failure");
        expect(causeOf({ ...ends, latencyMs: 0 })).toBe("context_length");
      });

    function classified(failing: NonNullable<Personality["tooLong"]>) {
      const body = { ok: true, text: JSON.stringify(failing.body) } as const;
      return classify(upstreamOf(row()), "m-1", {
        status: failing.status,
        headers: new Headers(failing.headers),
        nowMs: 0,
        body,
      });
    }
  },
);

it("fetches one token for all calls of a service account", () => {
  expect(server.bookOf("Vertex AI").tokens).toBe(1);
});

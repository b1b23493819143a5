import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { forwardWithoutTokens } from "../../../scripts/redact-tokens.ts";

const TOKEN = "fo-run-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJydW5fMSJ9.c2ln-bmF0_dXJl";
const LINE = `[wrangler:info] POST /rollout/${TOKEN}/llm_query 200 OK (3ms)\nnext ${TOKEN}`;

async function forwarded(pieces: readonly string[]): Promise<string> {
  const stream = new PassThrough();
  let text = "";
  forwardWithoutTokens(stream, (piece) => (text += piece));
  for (const piece of pieces) stream.write(piece);
  const ended = new Promise((resolve) => stream.once("end", resolve));
  stream.end();
  await ended;
  return text;
}

it("shows that there was a token, and nothing of it, wherever its text is torn", async () => {
  const expected = "[wrangler:info] POST /rollout/fo-run-…/llm_query 200 OK (3ms)\nnext fo-run-…";
  for (let at = 0; at <= LINE.length; at += 1) {
    expect(await forwarded([LINE.slice(0, at), LINE.slice(at)])).toBe(expected);
  }
});

it("leaves all other text as it is, white space too", async () => {
  const text = "\n a  b\t\u001b[32mGET /health\u001b[39m naïve 🦉 fo-run \n\n";
  expect(await forwarded([...text])).toBe(text);
});

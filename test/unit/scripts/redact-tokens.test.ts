import { expect, it } from "vitest";
import { withoutTokens } from "../../../scripts/redact-tokens.ts";

const TOKEN = "fo-run-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJydW5fMSJ9.c2ln-bmF0_dXJl";

it("replaces every token, and shows that there was one", () => {
  const text = `POST /rollout/${TOKEN}/llm_query 200 OK (3ms)\nnext ${TOKEN.replace("run", "pull")}`;
  expect(withoutTokens(text)).toBe("POST /rollout/fo-run-…/llm_query 200 OK (3ms)\nnext fo-pull-…");
});

it("leaves all other text as it is, white space too", () => {
  const text = "\n a  b\t\u001b[32mGET /health\u001b[39m naïve 🦉 fo-run \n\n";
  expect(withoutTokens(text)).toBe(text);
});

/** `GET /docs` renders the OpenAPI document as a page; `GET /` is JSON for programs and a page for browsers. */
import type { Context } from "hono";
import { accepts } from "hono/accepts";
import type { AppEnv } from "../context.ts";
import type { Handlers } from "../handler.ts";
import type { About } from "../../contract/ops.ts";
import { aboutPage, referenceWriting } from "../docs/page.ts";
import { SEARCH } from "../docs/search.ts";
import { STYLE } from "../docs/style.ts";
import { openApiWriting } from "../openapi/document.ts";
import { policyHash } from "./policy-hash.ts";
import { Prepared } from "./prepared.ts";

/** Rendered at the first request and kept, like the document itself. */
const page = new Prepared(() => referenceWriting(openApiWriting()));
let policy: string | null = null;

export const docsHandlers = {
  "GET /docs": async (c) => page.send(c, await pageHeaders()),
} satisfies Partial<Handlers>;

/** Describes the gateway: as JSON, or as a page if the client prefers HTML. */
export async function sendAbout(c: Context<AppEnv>, about: About): Promise<Response> {
  c.header("vary", "accept", { append: true });
  const type = accepts(c, {
    header: "Accept",
    supports: ["application/json", "text/html"],
    default: "application/json",
  });
  return type === "text/html" ? await sendPage(c, aboutPage(about)) : c.json(about);
}

/** Sends a page under a policy that allows nothing but the page's own style and, in the reference, its search: no loads. */
async function sendPage(c: Context<AppEnv>, html: string): Promise<Response> {
  return c.body(html, 200, await pageHeaders());
}

async function pageHeaders(): Promise<Record<string, string>> {
  policy ??= await contentSecurityPolicy();
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  };
}

async function contentSecurityPolicy(): Promise<string> {
  const [style, script] = await Promise.all([STYLE, SEARCH].map(policyHash));
  return `default-src 'none'; style-src ${style}; script-src ${script}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`;
}

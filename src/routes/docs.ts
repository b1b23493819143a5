/** `GET /docs`: the OpenAPI document as a page, made on the server; and `GET /`, which is a page for a browser. */
import type { Context, Hono } from "hono";
import { accepts } from "hono/accepts";
import type { AppEnv } from "../context.ts";
import type { About } from "../contract/ops.ts";
import { aboutPage, referencePage } from "../docs-page/page.ts";
import { STYLE } from "../docs-page/style.ts";
import { openApiText } from "../openapi.ts";

let page: string | null = null;
let policy: string | null = null;

export function mountDocs(app: Hono<AppEnv>): void {
  // Made when it is first asked for and kept as text, as the document is.
  app.get("/docs", async (c) => sendPage(c, (page ??= await referencePage(openApiText()))));
}

/** What the gateway is: JSON, or a page where the client would rather have one. */
export async function sendAbout(c: Context<AppEnv>, about: About): Promise<Response> {
  c.header("vary", "accept", { append: true });
  const type = accepts(c, {
    header: "Accept",
    supports: ["application/json", "text/html"],
    default: "application/json",
  });
  return type === "text/html" ? await sendPage(c, await aboutPage(about)) : c.json(about);
}

/** Sends a page that can load and run nothing, but for the one style that stands in it. */
async function sendPage(c: Context<AppEnv>, html: string): Promise<Response> {
  policy ??= await contentSecurityPolicy();
  return c.body(html, 200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
}

async function contentSecurityPolicy(): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(STYLE)));
  const style = `'sha256-${btoa(String.fromCharCode(...digest))}'`;
  return `default-src 'none'; style-src ${style}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

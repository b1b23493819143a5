/**
 * `GET /ui` and `GET /ui/runs/:id`: the page that shows runs. It is the same for everyone and needs no credential: its script
 * asks for one and reads the same routes as any client.
 */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { Handlers } from "../handler.ts";
import { policyHash } from "./policy-hash.ts";
import { PAGE_FILES } from "./page-files.mjs";

/**
 * The page loads and calls nothing but this gateway, and runs nothing but its own script: what models, prompts and clients
 * have written can be shown but not run. `style`: the source of the one style.
 */
const policyWith = (style: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${style}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
/** Of the style that this Worker has; null until somebody opens a page. */
let policy: string | null = null;

/**
 * The style is in the document, because a browser paints nothing before it has the style: a second request would wait behind
 * whatever the gateway does. The script is a module, for which the first paint does not wait.
 */
const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fanout</title>
<link rel="icon" href="data:,">
<style>${PAGE_FILES.style}</style>
<script type="module" src="/ui/app.js"></script>
</head>
<body><div id="page"><header><a href="/ui" class="home">fanout</a></header><main><p class="dim">Loading …</p></main><noscript>This page needs JavaScript. The log of a run is at /runs/:id/log.</noscript></div></body>
</html>
`;

export const runPageHandlers = {
  "GET /ui": (c) => send(c, HTML, "text/html"),
  "GET /ui/runs/:id": (c) => send(c, HTML, "text/html"),
  "GET /ui/app.js": (c) => send(c, PAGE_FILES.script, "text/javascript"),
} satisfies Partial<Handlers>;

async function send(c: Context<AppEnv>, text: string, type: string): Promise<Response> {
  policy ??= policyWith(await policyHash(PAGE_FILES.style));
  return c.body(text, 200, {
    "content-type": `${type}; charset=utf-8`,
    "content-security-policy": policy,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    // A deployment brings its own files: a page must not run the script of the last one.
    "cache-control": "no-cache",
  });
}

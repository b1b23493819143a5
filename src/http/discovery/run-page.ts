/**
 * `GET /ui` and `GET /ui/runs/:id`: the page that shows runs. It is the same for everyone and needs no credential: its script
 * asks for one and reads the same routes as any client.
 */
import type { Context } from "hono";
import type { AppEnv } from "../context.ts";
import type { Handlers } from "../handler.ts";
import { PAGE_FILES } from "./page-files.mjs";

/**
 * The page loads and calls nothing but this gateway, and runs nothing but its own script: what models, prompts and clients
 * have written can be shown but not run.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fanout</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/ui/app.css">
<script type="module" src="/ui/app.js"></script>
</head>
<body><div id="page"><header><a href="/ui" class="home">fanout</a></header><main><p class="dim">Loading …</p></main><noscript>This page needs JavaScript. The log of a run is at /runs/:id/log.</noscript></div></body>
</html>
`;

export const runPageHandlers = {
  "GET /ui": (c) => send(c, HTML, "text/html"),
  "GET /ui/runs/:id": (c) => send(c, HTML, "text/html"),
  "GET /ui/app.js": (c) => send(c, PAGE_FILES.script, "text/javascript"),
  "GET /ui/app.css": (c) => send(c, PAGE_FILES.style, "text/css"),
} satisfies Partial<Handlers>;

function send(c: Context<AppEnv>, text: string, type: string): Response {
  return c.body(text, 200, {
    "content-type": `${type}; charset=utf-8`,
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    // A deployment brings its own files: a page must not run the script of the last one.
    "cache-control": "no-cache",
  });
}

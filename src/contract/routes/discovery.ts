/** Routes that describe the gateway. They need no credential. */
import { aboutDocument, healthDocument, limitsDocument, stubList } from "../ops.ts";
import { asText, idParameter, json } from "./parts.ts";
import { family, type Shown } from "./record.ts";

/** A document for programs. */
const open = (summary: string, schema: Shown) => ({ auth: null, summary, replies: { 200: json(schema, summary) } });

/** A file of the run page, and the page itself: the same for everyone, its script asks for the credential. */
const page = (summary: string, description: string, type: string) => ({
  auth: null,
  guide: "docs/run-page.md" as const,
  summary,
  replies: { 200: asText(description, type) },
});

export const discovery = family("Discovery", {
  "GET /": {
    auth: null,
    guide: "README.md",
    summary: "Describes the gateway, with links",
    replies: {
      200: {
        description: "A description with links; an HTML page if `Accept` prefers `text/html`",
        content: { "application/json": { schema: aboutDocument }, ...asText("", "text/html").content },
      },
    },
  },
  "GET /docs": {
    auth: null,
    guide: "README.md",
    link: "docs",
    summary: "This reference as a page",
    replies: { 200: asText("The page", "text/html") },
  },
  "GET /llms.txt": {
    auth: null,
    guide: "README.md",
    link: "llms",
    summary: "Shows coding agents how to use the gateway",
    replies: { 200: asText("Markdown in the form of llmstxt.org", "text/plain") },
  },
  "GET /ui": { ...page("The page that lists runs, for the operator", "The page", "text/html"), link: "ui" },
  "GET /ui/runs/:id": {
    ...page("The page of a run: money, progress, failures and a timeline, live", "The page", "text/html"),
    parameters: [idParameter],
  },
  "GET /ui/app.js": page("The script of these pages", "JavaScript", "text/javascript"),
  "GET /favicon.ico": page(
    "The icon that browsers ask for beside a document such as `/openapi.json`",
    "The icon",
    "image/svg+xml",
  ),
  "GET /health": {
    ...open("Reports that the gateway responds, and warnings about its configuration", healthDocument),
    guide: "docs/deploy.md",
    link: "health",
  },
  "GET /limits": {
    ...open("Lists every limit that a client can reach", limitsDocument),
    guide: "docs/errors.md",
    link: "limits",
  },
  "GET /openapi.json": {
    auth: null,
    guide: "README.md",
    link: "openapi",
    summary: "This reference as OpenAPI 3.1",
    replies: { 200: { description: "OpenAPI 3.1", content: { "application/json": { schema: { type: "object" } } } } },
    errors: null,
  },
  "GET /stubs": {
    ...open("Lists the client files, one per language", stubList),
    guide: "README.md",
    link: "stubs",
  },
  "GET /stubs/:lang": {
    auth: null,
    guide: "docs/sandboxes.md",
    summary: "Returns the client file of a language, to copy into a sandbox",
    parameters: [{ ...idParameter, name: "lang" }],
    replies: { 200: asText("Source text", "text/x-python", "text/javascript", "text/x-shellscript", "text/plain") },
  },
});

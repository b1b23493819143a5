/** Discovery: what this is and what a client needs to talk to it. No route here asks for a credential. */
import type { Hono } from "hono";
import pythonStub from "../../stubs/python/fanout.py";
import { CATALOG_DATE } from "../budget/prices.ts";
import type { AppEnv } from "../context.ts";
import type { About, Health, Limits, StubList } from "../contract/ops.ts";
import { limits } from "../contract/ops.ts";
import { Refusal } from "../errors.ts";
import { openApiText } from "../openapi.ts";
import { VERSION } from "../version.ts";

/** Stubs by language: one file each, to be copied into a sandbox. */
const STUBS = new Map([["python", { file: "fanout.py", type: "text/x-python; charset=utf-8", text: pythonStub }]]);

const about: About = {
  name: "fanout",
  version: VERSION,
  description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
  links: { health: "/health", limits: "/limits", openapi: "/openapi.json", stubs: "/stubs" },
};

const health: Health = { status: "ok", version: VERSION };

const shownLimits: Limits = { ...limits, prices_date: CATALOG_DATE };

const stubs: StubList = {
  object: "list",
  data: [...STUBS].map(([lang, { file }]) => ({ lang, path: `/stubs/${lang}`, file })),
};

export function mountOps(app: Hono<AppEnv>): void {
  app.get("/", (c) => c.json(about));
  app.get("/health", (c) => c.json(health));
  app.get("/limits", (c) => c.json(shownLimits));
  app.get("/openapi.json", (c) => c.body(openApiText(), 200, { "content-type": "application/json" }));
  app.get("/stubs", (c) => c.json(stubs));
  app.get("/stubs/:lang", (c) => {
    const lang = c.req.param("lang");
    const stub = STUBS.get(lang);
    if (stub === undefined) {
      throw new Refusal({
        reason: "not_found",
        what: `a stub for "${lang}" (there are: ${[...STUBS.keys()].join(", ")})`,
      });
    }
    const disposition = `inline; filename="${stub.file}"`;
    return c.body(stub.text, 200, { "content-type": stub.type, "content-disposition": disposition });
  });
}

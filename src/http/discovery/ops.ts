/** Discovery: what this gateway is and what a client needs to use it. No route here needs a credential. */
import type { Context } from "hono";
import { IMAGE_FAMILIES_DATE } from "../../run/money/image-families.ts";
import { CATALOG_DATE } from "../../run/money/prices.ts";
import { isReader } from "../auth/middleware.ts";
import type { AppEnv } from "../context.ts";
import type { About, Health, Limits, StubList } from "../../contract/ops.ts";
import { limits } from "../../contract/ops.ts";
import { BODY_BYTES, ROUTES } from "../../contract/routes/table.ts";
import { configWarnings } from "../../config-warnings.ts";
import { configOf } from "../../env.ts";
import { Refusal, toWire } from "../../errors.ts";
import { llmsWriting } from "../docs/llms.ts";
import { openApiWriting } from "../openapi/document.ts";
import { VERSION } from "../../version.ts";
import type { Handlers } from "../handler.ts";
import { sendAbout } from "./docs.ts";
import { Prepared } from "./prepared.ts";
import { STUB_FILES } from "./stub-files.mjs";

const about: Omit<About, "deployment"> = {
  name: "fanout",
  version: VERSION,
  description: "Ordered LLM fan-out under a hard budget, for code that runs in a sandbox.",
  links: Object.fromEntries(ROUTES.flatMap(({ link, path }) => (link === undefined ? [] : [[link, path]]))),
};

/**
 * What is wrong with the configuration, or of no use in it, by variable. The sentences name upstreams and routes: strangers learn
 * only that there are some.
 */
async function warningsOf(c: Context<AppEnv>): Promise<string[]> {
  const parsed = configOf(c.env);
  const warnings = parsed.ok ? configWarnings(parsed.config) : [toWire(parsed.reason).error.message];
  const isKnown = parsed.ok && (await isReader(c, parsed.config));
  return warnings.length === 0 || isKnown ? warnings : [HIDDEN_WARNINGS];
}

/** The id that Cloudflare gave this version of the Worker; null where it is not deployed there. */
function deploymentOf(c: Context<AppEnv>): string | null {
  return c.env.CF_VERSION_METADATA?.id ?? null;
}

const HIDDEN_WARNINGS =
  "the configuration has warnings or a fault: GET /health with the operator's ADMIN_KEY lists warnings, and GET /runs names a fault";

const shownLimits: Limits = {
  ...limits,
  body_bytes: BODY_BYTES,
  prices_date: CATALOG_DATE,
  image_families_date: IMAGE_FAMILIES_DATE,
};

const stubs: StubList = {
  object: "list",
  data: STUB_FILES.map(({ lang, file }) => ({ lang, path: `/stubs/${lang}`, file })),
};

const openApi = new Prepared(openApiWriting);
/** One call that becomes three. */
const icon = new Prepared(
  () =>
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#2563eb" stroke-width="2"><path d="M2 8h4m0 0 7-5M6 8h7M6 8l7 5"/></svg>',
);
const forAgents = new Prepared(() => llmsWriting(openApiWriting(), stubs.data));

export const opsHandlers = {
  "GET /": (c) => sendAbout(c, { ...about, deployment: deploymentOf(c) }),
  "GET /health": async (c) => {
    const health: Health = {
      status: "ok",
      version: VERSION,
      deployment: deploymentOf(c),
      warnings: await warningsOf(c),
    };
    return c.json(health);
  },
  "GET /limits": (c) => c.json(shownLimits),
  "GET /openapi.json": (c) => openApi.send(c, { "content-type": "application/json" }),
  "GET /favicon.ico": (c) => icon.send(c, { "content-type": "image/svg+xml" }),
  "GET /llms.txt": (c) => forAgents.send(c, { "content-type": "text/plain; charset=utf-8" }),
  "GET /stubs": (c) => c.json(stubs),
  "GET /stubs/:lang": (c) => {
    const lang = c.req.param("lang");
    const stub = STUB_FILES.find((known) => known.lang === lang);
    if (stub === undefined) {
      const known = STUB_FILES.map((each) => each.lang).join(", ");
      throw new Refusal({ reason: "not_found", what: `stub for "${lang}"`, hint: `available: ${known}` });
    }
    const disposition = `inline; filename="${stub.file}"`;
    return c.body(stub.text, 200, { "content-type": stub.type, "content-disposition": disposition });
  },
} satisfies Partial<Handlers>;

/**
 * Evaluates a Worker's bundle in a process of its own, as a new isolate does, and prints what was built meanwhile. Counted, because
 * seconds depend on the machine: `node test/support/evaluated-worker.ts BUNDLE`.
 */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

/** Schemas of zod, and OpenAPI documents. */
const built = { schemas: 0, documents: 0 };

// Stands for the platform, which calls nothing of a Worker while it evaluates it.
const PLATFORM = new URL("platform.ts", import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier.startsWith("cloudflare:") ? { url: PLATFORM, shortCircuit: true } : next(specifier, context),
});

// Each schema of zod gets this property once.
const defineProperty = Object.defineProperty;
Object.defineProperty = (object, key, descriptor) => {
  if (key === "_zod") built.schemas += 1;
  return defineProperty(object, key, descriptor);
};
const stringify = JSON.stringify;
JSON.stringify = (...args: Parameters<typeof stringify>): string => {
  const text = stringify(...args);
  // The text of undefined is undefined.
  if (String(text).startsWith('{"openapi":')) built.documents += 1;
  return text;
};

type Worker = { default: { fetch: (request: Request, env: object) => Promise<Response> } };
const worker: Worker = await import(pathToFileURL(process.argv[2] ?? "").href);
const atStart = { ...built };
const reply = await worker.default.fetch(new Request("http://gateway/openapi.json"), {});
console.log(stringify({ atStart, atDocument: { ...built, status: reply.status } }));

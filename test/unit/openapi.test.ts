import { expect, it } from "vitest";
import { z } from "zod";
import { createApp } from "../../src/app.ts";
import { openApiText } from "../../src/openapi.ts";

const document = z.looseObject({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

it("documents exactly the routes that the application has", () => {
  const { paths } = document.parse(JSON.parse(openApiText()));
  const documented = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method} ${path}`),
  );
  // Middleware is registered for all methods; it is no route. Probes are the operator's: docs/probe.md has them.
  const routes = createApp()
    .routes.filter(({ method, path }) => method !== "ALL" && !path.startsWith("/_probe/"))
    .map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)(?:\{[^}]*\})?/g, "{$1}")}`);
  expect(routes).toContain("post /batch");
  expect(documented.toSorted()).toEqual([...new Set(routes)].toSorted());
});

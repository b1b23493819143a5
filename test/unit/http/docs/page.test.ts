import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createApp } from "../../../../src/http/app.ts";
import { batchBody } from "../../../../src/contract/batch.ts";
import { queryBody } from "../../../../src/contract/query.ts";
import { referenceWriting } from "../../../../src/http/docs/page.ts";
import { SEARCH } from "../../../../src/http/docs/search.ts";
import { openApiText } from "../../../../src/http/openapi/document.ts";
import { ROUTES_PER_SLICE } from "../../../../src/limits.ts";
import { atOnce, inSlices, type Sliced } from "../../../../src/text/bytes/slices.ts";

const ask = (path: string, accept?: string) =>
  createApp().request(path, accept === undefined ? {} : { headers: { accept } }, {});

const page = async () => await (await ask("/docs")).text();

const api = z
  .looseObject({
    paths: z.record(z.string(), z.record(z.string(), z.looseObject({ tags: z.array(z.string()).length(1) }))),
    components: z.looseObject({ schemas: z.record(z.string(), z.unknown()) }),
  })
  .parse(JSON.parse(openApiText()));

/** Elements and entities away: what a reader sees. */
const seen = (html: string) =>
  html
    .replace(/<[^>]*>/g, " ")
    .replaceAll("&quot;", '"')
    .replace(/\s+/g, " ")
    .replaceAll(" *", "*");

describe("GET /docs", () => {
  it("shows every route once, under its tag", async () => {
    const headings = [...(await page()).matchAll(/<h([23])[^>]*>(.*?)<\/h\1>/gs)].map(([, level, text = ""]) => ({
      level,
      text: seen(text).trim(),
    }));
    let tag = "";
    const shown: string[] = [];
    for (const { level, text } of headings.slice(headings.findLastIndex(({ text }) => text === "Calls"))) {
      if (level === "2") tag = text;
      else if (tag !== "Schemas") shown.push(`${tag}: ${text}`);
    }
    const documented = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { tags }]) => `${tags[0]}: ${method.toUpperCase()} ${path}`),
    );
    expect(documented.length).toBeGreaterThan(30);
    expect(shown.toSorted()).toEqual(documented.toSorted());
  });

  it("begins with one call and a list of calls as curl commands that the routes accept, before the list of routes", async () => {
    const html = await page();
    expect(html.indexOf("<pre>")).toBeLessThan(html.indexOf("<nav"));
    const examples = [...html.matchAll(/<pre><code>(.*?)<\/code><\/pre>/gs)].map(([, text = ""]) =>
      text.replaceAll("&quot;", '"').replaceAll("&#39;", "'"),
    );
    const bodies = examples.map((text) => ({
      path: /\$FANOUT_URL(\S+)/.exec(text)?.[1],
      body: JSON.parse(/-d '(.*)'$/.exec(text)?.[1] ?? ""),
    }));
    expect(bodies.map(({ path }) => path)).toEqual(["/query", "/batch"]);
    expect(queryBody().safeParse(bodies[0]?.body).success).toBe(true);
    expect(batchBody().safeParse(bodies[1]?.body).success).toBe(true);
  });

  it("names guide pages that exist", async () => {
    const guides = [...(await page()).matchAll(/<code>(docs\/[^<]+)<\/code>/g)].map(([, path = ""]) => path);
    expect(guides.length).toBeGreaterThan(3);
    for (const path of guides) expect(existsSync(path)).toBe(true);
  });

  it("has every schema and leads each of its links to something that is there, once", async () => {
    const html = await page();
    const ids = [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const name of Object.keys(api.components.schemas)) expect(ids).toContain(`schema-${name.toLowerCase()}`);
    const links = [...html.matchAll(/ href="([^"]+)"/g)].map(([, target = ""]) => target);
    expect(links).toContain("/openapi.json");
    for (const target of new Set(links)) {
      if (target.startsWith("#")) expect(ids).toContain(target.slice(1));
      else expect((await ask(target)).status).toBe(200);
    }
  });

  it("says of a field what it is, its bounds and whether it may be left out", async () => {
    const text = seen(await page());
    // Not `toContain`, which would print all of the page.
    expect(text.includes("max_tokens integer 1 to 10,000,000 Completion cap, in tokens")).toBe(true);
    expect(text.includes('on_error "continue" or "abort"')).toBe(true);
    expect(text.includes("items array of BatchItem at most 50,000 of them")).toBe(true);
    expect(text.includes('object* "quote"')).toBe(true);
  });

  it("loads nothing and runs nothing but its search, and the policy that says so names the very texts that it has", async () => {
    const answer = await ask("/docs");
    const html = await answer.text();
    expect(html).not.toMatch(/<script(?!>)|<link|<img|<iframe| on\w+=| src=|style="|@import|url\(|https?:/i);
    const [style = "", ...more] = [...html.matchAll(/<style>(.*?)<\/style>/gs)].map(([, text = ""]) => text);
    expect(more).toEqual([]);
    const scripts = [...html.matchAll(/<script>(.*?)<\/script>/gs)].map(([, text = ""]) => text);
    expect(scripts).toEqual([SEARCH]);
    const hashOf = async (text: string): Promise<string> =>
      `'sha256-${Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(text))).toString("base64")}'`;
    expect(answer.headers.get("content-security-policy")).toBe(
      `default-src 'none'; style-src ${await hashOf(style)}; script-src ${await hashOf(SEARCH)}; base-uri 'none'; ` +
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    );
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

/** A document that another request has generated. */
function* written(text: string): Sliced<string> {
  yield;
  return text;
}

describe("the reference page", () => {
  it("is parsed and rendered a few routes and schemas at a time, and is the same as at once", async () => {
    const text = openApiText();
    let pauses = 0;
    const html = await inSlices(referenceWriting(written(text)), () => {
      pauses += 1;
      return Promise.resolve();
    });
    expect(html).toBe(await page());
    const { paths, components } = api;
    const perTag = new Map<string, number>();
    for (const { tags } of Object.values(paths).flatMap((methods) => Object.values(methods)))
      perTag.set(tags[0] ?? "", (perTag.get(tags[0] ?? "") ?? 0) + 1);
    const slicesOf = (parts: number) => Math.floor(parts / ROUTES_PER_SLICE);
    const schemas = slicesOf(Object.keys(components.schemas).length);
    const rendered = [...perTag.values()].reduce((sum, routes) => sum + slicesOf(routes), 0);
    // One before, and one between the outline and its parts.
    expect(pauses).toBe(2 + slicesOf(Object.keys(paths).length) + schemas + rendered + schemas);
  });

  it("escapes every text of the document, wherever it is", async () => {
    const evil = `<script>alert("1")</script>'&\`<b>\``;
    const schema = { type: "object", description: evil, pattern: evil, enum: undefined, required: [evil] };
    const field = { type: evil, description: evil, format: evil, enum: undefined };
    const named = { ...schema, properties: { [evil]: field, choice: { enum: [evil] } } };
    const operation = {
      tags: [evil],
      summary: evil,
      description: evil,
      parameters: [{ name: evil, in: evil, description: evil, schema: { $ref: `#/${evil}` } }],
      requestBody: { description: evil, content: { [evil]: { schema: named } } },
      responses: { [evil]: { description: evil, headers: { [evil]: { description: evil } } } },
      "x-guide": evil,
    };
    const text = JSON.stringify({
      info: { title: evil, version: evil, description: evil },
      paths: { [`/${evil}`]: { [`get${evil}`]: operation } },
      components: { schemas: { [evil]: named } },
    });
    const html = atOnce(referenceWriting(written(text)));
    expect(html.replace(`<script>${SEARCH}</script>`, "")).not.toMatch(/<script|<b>/);
    expect(html).not.toContain(`alert("1")`);
    expect(html.split("&lt;script&gt;").length).toBeGreaterThan(20);
  });
});

describe("GET /", () => {
  it("is JSON for a program and a page for a browser, with the same links", async () => {
    const json = await ask("/", "*/*");
    const { links } = z.looseObject({ links: z.record(z.string(), z.string()) }).parse(await json.json());
    expect(await (await ask("/")).json()).toMatchObject({ links: { docs: "/docs" } });
    const html = await ask("/", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    expect(html.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const shown = [...(await html.text()).matchAll(/ href="([^"]+)"/g)].map(([, target]) => target);
    expect(shown).toEqual(Object.values(links));
    for (const answer of [json, html]) expect(answer.headers.get("vary")).toBe("accept");
    for (const path of shown) expect((await ask(path ?? "")).status).toBe(200);
  });
});

/** The gateway's HTML pages: the reference, generated from the OpenAPI document, and the page at `/`. */
import { html, raw } from "hono/html";
import { ROUTES_PER_SLICE } from "../../limits.ts";
import type { Sliced } from "../../text/bytes/slices.ts";
import { firstCalls } from "./first-calls.ts";
import { routeSection } from "./operation.ts";
import { anchorOf, referenceParsing, routesByTag, type Reference, type Route, type Schema } from "./reference.ts";
import { fieldTable, schemaAnchor, typeLine } from "./schema.ts";
import { guidesSection } from "./guides.ts";
import { SEARCH } from "./search.ts";
import { STYLE } from "./style.ts";
import { prose, type Html } from "./text.ts";

/** The reference: how to make a first call, then every route by its tag, then every schema that the routes name. */
export function* referenceWriting(openApi: Sliced<string>): Sliced<string> {
  const reference = yield* referenceParsing(yield* openApi);
  const { info, components } = reference;
  const tags = routesByTag(reference);
  const sections: Html[] = [];
  for (const [tag, routes] of tags) {
    const shown = yield* rendering(routes, routeSection);
    sections.push(
      html`<h2 id="${tagAnchor(tag)}">${tag}</h2>
        ${shown}`,
    );
  }
  const schemas = yield* rendering(Object.entries(components.schemas), schemaSection);
  return page(
    `${info.title} ${info.version}: reference`,
    html`<div class="frame">
      <header>
        <h1>${info.title} <span class="lead">${info.version}</span></h1>
        <p class="lead">${info.description ?? ""}</p>
        ${firstCalls()}
      </header>
      ${navigation(tags, reference)}
      <main>
        <p>
          Send the credential as <code>Authorization: Bearer</code> or as <code>x-api-key</code>: a run token, or the
          operator's <code>ADMIN_KEY</code>. Routes marked <span class="open">no credential</span> need none. Fields
          marked <span class="required">*</span> are required.
        </p>
        <p>
          A request that is refused or fails returns a 4xx or 5xx status and an <a href="#schema-error">Error</a>. Its
          <code>code</code> names the reason.
        </p>
        <h2 id="guides">Guides</h2>
        ${guidesSection(tags)} ${sections}
        <h2 id="schemas">Schemas</h2>
        ${schemas}
      </main>
    </div>`,
    SCRIPT_ELEMENT,
  );
}

function* rendering<T>(parts: readonly T[], render: (part: T) => Html): Sliced<Html[]> {
  const rendered: Html[] = [];
  for (const part of parts) {
    rendered.push(render(part));
    if (rendered.length % ROUTES_PER_SLICE === 0) yield;
  }
  return rendered;
}

/** The page at `/` for a browser: what the gateway is, with links. */
export function aboutPage(about: {
  name: string;
  version: string;
  description: string;
  links: Record<string, string>;
}): string {
  const links = Object.values(about.links).map(
    (path) =>
      html`<li>
        <a href="${path}"><code>${path}</code></a>
      </li>`,
  );
  return page(
    about.name,
    html`<main class="plain">
      <h1>${about.name} <span class="lead">${about.version}</span></h1>
      <p>${about.description}</p>
      <ul>
        ${links}
      </ul>
    </main>`,
  );
}

function navigation(tags: Map<string, Route[]>, { components }: Reference): Html {
  const lists = [...tags].map(
    ([tag, routes]) =>
      html`<h2><a href="#${tagAnchor(tag)}">${tag}</a></h2>
        <ul>
          ${routes.map(navigationLine)}
        </ul>`,
  );
  const names = Object.keys(components.schemas).map(
    (name) =>
      html`<li>
        <a href="#${schemaAnchor(name)}"><code>${name}</code></a>
      </li>`,
  );
  return html`<nav aria-label="Contents">
    <label for="search">Search</label>
    <input id="search" type="search" placeholder="/" autocomplete="off" />
    <output id="found" for="search"></output>
    <h2><a href="#guides">Guides</a></h2>
    ${lists}
    <h2><a href="#schemas">Schemas</a></h2>
    <ul>
      ${names}
    </ul>
  </nav>`;
}

function navigationLine({ id, method, path }: Route): Html {
  return html`<li>
    <a href="#${id}"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></a>
  </li>`;
}

function schemaSection([name, schema]: [string, Schema]): Html {
  const id = schemaAnchor(name);
  const note = schema.description === undefined ? "" : html`<p>${prose(schema.description)}</p>`;
  return html`<section class="schema" id="${id}">
    <h3><a href="#${id}">${name}</a></h3>
    <p class="content">${typeLine(schema)}</p>
    ${note}${fieldsOf(schema)}
  </section>`;
}

/** Fields of a schema, or of the schemas that it combines. */
function fieldsOf(schema: Schema): Html {
  return html`${[schema, ...(schema.allOf ?? [])].map((part) => fieldTable(part))}`;
}

function tagAnchor(tag: string): string {
  return `tag-${anchorOf(tag)}`;
}

/** The text between the tags must be exactly `STYLE`: the content security policy contains its hash. */
const STYLE_ELEMENT = raw(`<style>${STYLE}</style>`);
/** The same holds for the script. */
const SCRIPT_ELEMENT = raw(`<script>${SEARCH}</script>`);

function page(title: string, body: Html, script: Html | "" = ""): string {
  return textOf(
    html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width,initial-scale=1" />
          <title>${title}</title>
          ${STYLE_ELEMENT}
        </head>
        <body>
          ${body} ${script}
        </body>
      </html>`,
  );
}

/** The text of HTML without parts that are awaited: no page has one. */
function textOf(whole: Html): string {
  if (whole instanceof Promise) throw new Error("a part of a page is a promise");
  return String(whole);
}

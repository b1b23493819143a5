/** The pages of the gateway for people: the reference, made of the OpenAPI document, and the one at `/`. */
import { html, raw } from "hono/html";
import { routeSection } from "./operation.ts";
import { anchorOf, doorsOf, parseReference, type Reference, type Route, type Schema } from "./reference.ts";
import { fieldTable, schemaAnchor, typeLine } from "./schema.ts";
import { STYLE } from "./style.ts";
import { prose, type Html } from "./text.ts";

/** The reference: every route by its door, and every schema that they name. */
export async function referencePage(openApiText: string): Promise<string> {
  const reference = parseReference(openApiText);
  const { info, components } = reference;
  const doors = doorsOf(reference);
  const sections = [...doors].map(
    ([door, routes]) =>
      html`<h2 id="${doorAnchor(door)}">${door}</h2>
        ${routes.map(routeSection)}`,
  );
  const schemas = Object.entries(components.schemas).map(schemaSection);
  return await page(
    `${info.title} ${info.version}: reference`,
    html`<div class="frame">
      <header>
        <h1>${info.title} <span class="lead">${info.version}</span></h1>
        <p class="lead">${info.description ?? ""}</p>
      </header>
      ${navigation(doors, reference)}
      <main>
        <p>
          All of it as OpenAPI 3.1: <a href="/openapi.json">/openapi.json</a>. What this gateway is: <a href="/">/</a>.
          A <span class="required">*</span> marks what may not be left out.
        </p>
        <p>
          Routes take <code>Authorization: Bearer</code> with a run token or the operator's <code>ADMIN_KEY</code>, or
          the same in <code>x-api-key</code>, unless it says <span class="open">no credential</span>. What is refused or
          fails is answered with 4xx or 5xx and an <a href="#schema-error">Error</a>, whose <code>code</code> says why.
        </p>
        ${sections}
        <h2 id="schemas">Schemas</h2>
        ${schemas}
      </main>
    </div>`,
  );
}

/** What the gateway is, with links, for a browser. */
export async function aboutPage(about: {
  name: string;
  version: string;
  description: string;
  links: Record<string, string>;
}): Promise<string> {
  const links = Object.values(about.links).map(
    (path) =>
      html`<li>
        <a href="${path}"><code>${path}</code></a>
      </li>`,
  );
  return await page(
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

function navigation(doors: Map<string, Route[]>, { components }: Reference): Html {
  const lists = [...doors].map(
    ([door, routes]) =>
      html`<h2><a href="#${doorAnchor(door)}">${door}</a></h2>
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

/** Fields of a schema, or of what it is made of. */
function fieldsOf(schema: Schema): Html {
  return html`${[schema, ...(schema.allOf ?? [])].map((part) => fieldTable(part))}`;
}

function doorAnchor(door: string): string {
  return `door-${anchorOf(door)}`;
}

/** Exactly the style between its tags: the pages' policy names its hash. */
const STYLE_ELEMENT = raw(`<style>${STYLE}</style>`);

async function page(title: string, body: Html): Promise<string> {
  return String(
    await html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width,initial-scale=1" />
          <title>${title}</title>
          ${STYLE_ELEMENT}
        </head>
        <body>
          ${body}
        </body>
      </html>`,
  );
}

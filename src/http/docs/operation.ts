/** One route as HTML: its purpose, parameters, request body and responses. */
import { html } from "hono/html";
import { guideAnchor } from "./guides.ts";
import type { Answer, Operation, Parameter, Route, Schema } from "./reference.ts";
import { fieldTable, typeLine } from "./schema.ts";
import { prose, type Html } from "./text.ts";

type Content = Operation["responses"][string]["content"];

export function routeSection({ id, method, path, operation }: Route): Html {
  const { summary = "", description, parameters = [], requestBody, responses } = operation;
  const isOpen = operation.security === undefined;
  // Errors have the same form on every route; the top of the page describes it.
  const answers = Object.entries(responses).filter(([status]) => status !== "default");
  return html`<section class="route" id="${id}">
    <h3>
      <a href="#${id}"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></a>
    </h3>
    <p>${prose(summary)}${isOpen ? html` <span class="open">no credential</span>` : ""}</p>
    ${description === undefined ? "" : html`<p>${prose(description)}</p>`} ${guideLine(operation["x-guide"])}
    ${
      parameters.length === 0
        ? ""
        : html`<h4>Parameters</h4>
            <table class="fields">
              ${parameters.map(parameterRow)}
            </table>`
    }
    ${requestBody === undefined ? "" : bodyPart(requestBody)}
    <h4>Responses</h4>
    <table class="fields">
      ${answers.map(answerRow)}
    </table>
  </section>`;
}

function guideLine(guide: string | undefined): Html {
  if (guide === undefined) return html``;
  return html`<p class="content">
    Guide: <a href="#${guideAnchor(guide)}"><code>${guide}</code></a>
  </p>`;
}

function parameterRow({ name, in: place, required = false, description, schema }: Parameter): Html {
  return html`<tr>
    <th scope="row">
      <code>${name}</code>${required ? html`<span class="required" title="required">*</span>` : ""}
      <span class="place">${place}</span>
    </th>
    <td>
      ${schema === undefined ? "" : typeLine(schema)}${description === undefined ? "" : html`<p>${prose(description)}</p>`}
    </td>
  </tr>`;
}

function bodyPart({ required = false, description, content }: NonNullable<Operation["requestBody"]>): Html {
  return html`<h4>Body${required ? "" : ", optional"}</h4>
    ${description === undefined ? "" : html`<p>${prose(description)}</p>`}${contentList(content)}`;
}

function answerRow([status, { description, headers = {}, content }]: [string, Answer]): Html {
  const headerLines = Object.entries(headers).map(
    ([name, header]) => html`<p><code>${name}</code>: ${prose(header.description ?? "")}</p>`,
  );
  return html`<tr>
    <th scope="row"><code>${status}</code></th>
    <td>
      <p>${prose(description)}</p>
      ${contentList(content)}${headerLines}
    </td>
  </tr>`;
}

/** The schema of a body by media type; media types with the same schema share a line. */
function contentList(content: Content): Html {
  const byKey = new Map<string, { types: string[]; schema: Schema }>();
  for (const [type, { schema = {} }] of Object.entries(content ?? {})) {
    const key = JSON.stringify(schema);
    const known = byKey.get(key);
    if (known === undefined) byKey.set(key, { types: [type], schema });
    else known.types.push(type);
  }
  return html`${[...byKey.values()].map(
    ({ types, schema }) =>
      html`<p class="content">${types.join(", ")}: ${typeLine(schema)}</p>
        ${fieldTable(schema)}`,
  )}`;
}

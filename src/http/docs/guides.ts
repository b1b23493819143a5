/** The guides of the source, each with the routes that it explains. The gateway does not serve their texts. */
import { html } from "hono/html";
import { anchorOf, type Route } from "./reference.ts";
import type { Html } from "./text.ts";

/** `docs/runs.md` and what it explains, for the guides that routes name. */
export function guidesSection(tags: ReadonlyMap<string, readonly Route[]>): Html {
  const routesOf = new Map<string, Route[]>();
  for (const route of [...tags.values()].flat()) {
    const guide = route.operation["x-guide"];
    if (guide === undefined) continue;
    routesOf.set(guide, [...(routesOf.get(guide) ?? []), route]);
  }
  const sorted = [...routesOf].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return html`<p>Guides with tested examples are in the source, beside this gateway's code.</p>
    ${sorted.map(
      ([guide, routes]) =>
        html`<section class="guide" id="${guideAnchor(guide)}">
          <h3><code>${guide}</code></h3>
          <p>
            ${routes.map(({ id, method, path }, at) => html`${at === 0 ? "" : ", "}<a href="#${id}">${method} ${path}</a>`)}
          </p>
        </section>`,
    )}`;
}

export function guideAnchor(guide: string): string {
  return `guide-${anchorOf(guide)}`;
}

/** The named schemas of the document: those with an `id`. */
import { zodToOpenAPIRegistry } from "@asteasolutions/zod-to-openapi";
import * as z from "zod";
import { resumedUpstream, upstreamList } from "../../contract/operator/upstreams.ts";
import { openedRunDocument, patchedRunDocument, runDocument, runLookDocument } from "../../contract/runs.ts";

/** Objects that the document describes as another one with more fields, so that generated clients share the type. */
const EXTENSIONS: readonly (readonly [extended: () => z.ZodObject, base: () => z.ZodObject])[] = [
  [runLookDocument, runDocument],
  [openedRunDocument, runDocument],
  [patchedRunDocument, runDocument],
  [resumedUpstream, upstreamList],
];

/**
 * Makes every schema with an `id` a component. The generator reads names from its own registry. Its `.openapi()` would write
 * them there when the schemas are built, in every isolate that starts, though few requests read the document.
 */
export function nameComponents(): void {
  const bases = new Map<z.core.$ZodType, z.ZodObject>(EXTENSIONS.map(([extended, base]) => [extended(), base()]));
  for (const [refId, schema] of z.globalRegistry._idmap) {
    const base = bases.get(schema);
    const baseId = base?.meta()?.id;
    const extendedFrom = base && baseId !== undefined && { extendedFrom: { refId: baseId, schema: base } };
    zodToOpenAPIRegistry.add(schema, { _internal: { refId, ...extendedFrom } });
  }
}

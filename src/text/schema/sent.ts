/**
 * Whether the schema of a call goes into its provider's field, or into the system message: because there is no field for it,
 * or because the provider has refused it there. A refusal costs nothing, so the same attempt is then made in the other form.
 */
import type { CallBody, Classification } from "../../call.ts";
import { REFUSED_SCHEMAS_KEPT } from "../../limits.ts";
import { schemaInstruction } from "./forms.ts";
import { BoundedMap } from "../../renewed/bounded-map.ts";

/** The schemas that upstreams have refused in their field, as an isolate has seen it. */
export class RefusedSchemas {
  readonly #refused = new BoundedMap<string, true>(REFUSED_SCHEMAS_KEPT);

  has(upstream: string, model: string, schema: object): boolean {
    return this.#refused.size > 0 && this.#refused.has(keyOf(upstream, model, schema));
  }

  add(upstream: string, model: string, schema: object): void {
    this.#refused.set(keyOf(upstream, model, schema), true);
  }
}

/** By the schema too: what is wrong with one of a client must not change the requests of others. */
function keyOf(upstream: string, model: string, schema: object): string {
  return `${upstream}/${model}\n${JSON.stringify(schema)}`;
}

/** A model at its upstream; `takesSchema`: whether requests there have a field that can have the schema. */
export type SchemaPlace = {
  upstream: string;
  model: string;
  takesSchema: (schema: Readonly<Record<string, unknown>>) => boolean;
};

/** The body as it is sent: with its schema in the system message if that is not to go into a field. */
export function bodyToSend(
  { upstream, model, takesSchema }: SchemaPlace,
  body: CallBody,
  refused: RefusedSchemas | undefined,
): CallBody {
  const { schema, ...rest } = body;
  if (schema === undefined) return body;
  if (takesSchema(schema) && refused?.has(upstream, model, schema) !== true) return body;
  const instruction = schemaInstruction(schema);
  return { ...rest, system: body.system === undefined ? instruction : `${body.system}\n\n${instruction}` };
}

/** Whether the upstream refused a request for the field in which it had its schema. */
export function refusesSchema(status: number, classification: Classification): boolean {
  if (status !== 400 && status !== 422) return false;
  return (
    classification.kind === "failure" &&
    classification.class === "rejected" &&
    "message" in classification.reason &&
    /response_format|output_config|json_schema|schema|structured|grammar/i.test(classification.reason.message)
  );
}

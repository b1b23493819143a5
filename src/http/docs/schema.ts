/** JSON schemas as HTML: the type of a value in one line, and the fields of an object as a table. */
import { html } from "hono/html";
import { anchorOf, type Schema } from "./reference.ts";
import { prose, type Html } from "./text.ts";

/** Nested objects are expanded in place down to this level; deeper ones are shown as `object`. */
const NESTING_MAX = 6;

/** The type of a value in one line: `array of Slot at most 100 of them`. References are links. */
export function typeLine(schema: Schema): Html {
  const bounds = boundsOf(schema);
  return html`${kindOf(schema)}${bounds === "" ? "" : html` <span class="bounds">${bounds}</span>`}`;
}

function kindOf(schema: Schema): Html {
  if (schema.$ref !== undefined) return linkTo(schema.$ref);
  if (schema.enum !== undefined)
    return separated(schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return separated(choices.map(typeLine));
  if (schema.allOf !== undefined) return separated(schema.allOf.map(typeLine), " with ");
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? []);
  if (types.length === 0) return html`any value`;
  return separated(types.map((type) => typeName(type, schema)));
}

function typeName(type: string, schema: Schema): Html {
  if (type === "array" && schema.items !== undefined) return html`array of ${typeLine(schema.items)}`;
  const { additionalProperties: values } = schema;
  if (type === "object" && schema.properties === undefined && typeof values === "object") {
    return html`object of ${typeLine(values)} by name`;
  }
  return html`${type === "null" ? html`<code>null</code>` : type}`;
}

function separated(parts: readonly Html[], between = " or "): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${between}${part}`))}`;
}

function linkTo(reference: string): Html {
  const name = reference.split("/").at(-1) ?? "";
  return html`<a href="#${schemaAnchor(name)}">${name}</a>`;
}

/** The anchor of a named schema on the page. */
export function schemaAnchor(name: string): string {
  return `schema-${anchorOf(name)}`;
}

function boundsOf(schema: Schema): string {
  const bounds = [
    schema.format,
    range(schema.minimum, schema.maximum, ""),
    schema.exclusiveMinimum === undefined ? undefined : `above ${schema.exclusiveMinimum}`,
    range(schema.minLength, schema.maxLength, " characters"),
    range(schema.minItems, schema.maxItems, " of them"),
    schema.pattern === undefined || schema.format !== undefined ? undefined : `matches ${schema.pattern}`,
  ];
  return bounds.filter((bound) => bound !== undefined).join(", ");
}

function range(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  // zod bounds every integer to the safe range; a reader need not see that.
  const least = min === -Number.MAX_SAFE_INTEGER ? undefined : min;
  const most = max === Number.MAX_SAFE_INTEGER ? undefined : max;
  if (least !== undefined && most !== undefined) return `${shown(least)} to ${shown(most)}${unit}`;
  if (least !== undefined) return `at least ${shown(least)}${unit}`;
  return most === undefined ? undefined : `at most ${shown(most)}${unit}`;
}

function shown(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 9 });
}

/** A table of an object's fields, with nested objects expanded; empty if the schema has no fields. */
export function fieldTable(schema: Schema, nesting = 0): Html {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return html``;
  const required = new Set(schema.required);
  const rows = fields.map(([name, field]) => fieldRow(name, field, { isRequired: required.has(name), nesting }));
  return html`<table class="fields">
      ${rows}
    </table>
    ${closing(schema)}`;
}

function fieldRow(
  name: string,
  field: Schema,
  { isRequired, nesting }: { isRequired: boolean; nesting: number },
): Html {
  const note = field.description === undefined ? "" : html`<p>${prose(field.description)}</p>`;
  const within = nesting < NESTING_MAX ? partsOf(field).map((part) => fieldTable(part, nesting + 1)) : "";
  return html`<tr>
    <th scope="row"><code>${name}</code>${isRequired ? html`<span class="required" title="required">*</span>` : ""}</th>
    <td>${typeLine(field)}${note}${within}</td>
  </tr>`;
}

/** The schemas within a value that can have fields: itself, its elements, its alternatives. */
function partsOf(schema: Schema): Schema[] {
  const { items, additionalProperties: values } = schema;
  const inner = [
    items,
    typeof values === "object" ? values : undefined,
    ...(schema.anyOf ?? []),
    ...(schema.oneOf ?? []),
  ];
  const deeper = inner.filter((part) => part !== undefined).flatMap(partsOf);
  return schema.properties === undefined ? deeper : [schema, ...deeper];
}

function closing({ additionalProperties: rest }: Schema): Html {
  if (rest === false) return html`<p class="closing">Other fields are refused.</p>`;
  return rest === undefined ? html`` : html`<p class="closing">Other fields are allowed.</p>`;
}

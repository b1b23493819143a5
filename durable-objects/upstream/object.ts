/**
 * What all runs have learned of one upstream. No call passes through it on its way to the upstream: runs read it beside
 * their work and report what is new, so it is written seldom. Its methods are described in src/objects/methods/upstream-api.ts.
 *
 *   template  one row per model and shape of request: what the upstream adds to prompts as JSON, and who saw it
 */
import { DurableObject } from "cloudflare:workers";
import type { TemplateFacts } from "../../src/run/money/template.ts";
import type { Witness } from "../../src/run/money/witnesses.ts";
import { keyOf, learned } from "../../src/run/learned/reports.ts";
import type { TemplateRow } from "../../src/run/learned/templates.ts";
import { TEMPLATE_LIFE_MS } from "../../src/limits.ts";
import type { UpstreamApi } from "../../src/objects/methods/upstream-api.ts";
import { Tables } from "../schema-version.ts";
import { MIGRATIONS } from "./migrations.ts";

export class UpstreamObject extends DurableObject<object> implements UpstreamApi {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    new Tables(ctx.storage, MIGRATIONS).make("template");
    this.#storage = ctx.storage;
    this.#sql = ctx.storage.sql;
  }

  templates(): TemplateRow[] {
    const rows = this.#sql.exec<{ model: string; shape: string; body: string }>("SELECT * FROM template").toArray();
    return rows.map(({ model, shape, body }) => ({ ...storedFacts(body), model, shape }));
  }

  learn(seen: readonly TemplateRow[]): TemplateRow[] {
    const nowMs = Date.now();
    this.#storage.transactionSync(() => {
      const known = new Map(this.templates().map((row) => [keyOf(row), row]));
      for (const [key, row] of known) if (this.#hasFaded(row, nowMs)) known.delete(key);
      for (const row of learned([...known.values()], seen, nowMs)) this.#put(row);
    });
    return this.templates();
  }

  /** Deletes a row if nobody has seen its template lately, and says so. */
  #hasFaded({ model, shape, witnesses = [] }: TemplateRow, nowMs: number): boolean {
    if (witnesses.some(({ seenAtMs }) => nowMs - seenAtMs < TEMPLATE_LIFE_MS)) return false;
    this.#sql.exec("DELETE FROM template WHERE model = ? AND shape = ?", model, shape);
    return true;
  }

  #put({ model, shape, ...facts }: TemplateRow): void {
    const query = "INSERT OR REPLACE INTO template (model, shape, body) VALUES (?, ?, ?)";
    this.#sql.exec(query, model, shape, JSON.stringify(facts));
  }
}

function storedFacts(body: string): StoredFacts {
  // Written by this object, with the witnesses.
  return JSON.parse(body);
}

type StoredFacts = TemplateFacts & { witnesses: readonly Witness[] };

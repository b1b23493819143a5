/**
 * What all runs have learned of one upstream. No call passes through it on its way to the upstream: runs read it beside
 * their work and report what is new, so it is written seldom. Its methods are described in src/run-api/upstream-api.ts.
 *
 *   template  one row per model and shape of request: what the upstream adds to prompts, as JSON
 */
import { DurableObject } from "cloudflare:workers";
import { isKnown, mergedFacts, type TemplateFacts } from "../../src/budget/template.ts";
import { ANY_MODEL, type TemplateRow } from "../../src/engine/learned/templates.ts";
import { TEMPLATES_PER_UPSTREAM_MAX } from "../../src/limits.ts";
import type { UpstreamApi } from "../../src/run-api/upstream-api.ts";

export class UpstreamObject extends DurableObject<object> implements UpstreamApi {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    this.#storage = ctx.storage;
    this.#sql = ctx.storage.sql;
    this.#sql.exec(`
      CREATE TABLE IF NOT EXISTS template (model TEXT, shape TEXT, body TEXT NOT NULL, PRIMARY KEY (model, shape)) STRICT, WITHOUT ROWID`);
  }

  templates(): TemplateRow[] {
    const rows = this.#sql.exec<{ model: string; shape: string; body: string }>("SELECT * FROM template").toArray();
    return rows.map(({ model, shape, body }) => {
      const facts: TemplateFacts = JSON.parse(body);
      return { model, shape, ...facts };
    });
  }

  learn(seen: readonly TemplateRow[]): TemplateRow[] {
    this.#storage.transactionSync(() => {
      const known = new Map(this.templates().map((row) => [`${row.model}\n${row.shape}`, row]));
      for (const row of seen) {
        const isRoom = known.has(`${row.model}\n${row.shape}`) || known.size < TEMPLATES_PER_UPSTREAM_MAX;
        const model = isRoom ? row.model : ANY_MODEL;
        const key = `${model}\n${row.shape}`;
        const before = known.get(key);
        if (isKnown(before, row)) continue;
        const { model: _model, shape, ...facts } = { ...row, ...mergedFacts(before, row) };
        known.set(key, { model, shape, ...facts });
        this.#put(model, shape, facts);
      }
    });
    return this.templates();
  }

  #put(model: string, shape: string, facts: TemplateFacts): void {
    const query = "INSERT OR REPLACE INTO template (model, shape, body) VALUES (?, ?, ?)";
    this.#sql.exec(query, model, shape, JSON.stringify(facts));
  }
}

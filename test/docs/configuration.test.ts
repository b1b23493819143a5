/** docs/configuration.md names every variable and field that the gateway reads, and no others. */
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VARIABLES } from "../../src/env.ts";
import { commonFields, remoteFields } from "../../src/providers/config/fields.ts";
import { KINDS } from "../../src/providers/kinds/table.ts";
import { parseUpstreams } from "../../src/providers/upstreams.ts";
import { ROOT } from "./page.ts";
import { codesIn, rowsOf } from "./tables.ts";

const PAGE = "docs/configuration.md";
const source = (file: string) => readFile(join(ROOT, file), "utf8");

describe("docs/configuration.md", () => {
  it("names every variable that the gateway reads", async () => {
    const rows = (await rowsOf(PAGE, "variable")).filter((row) => row.length === 3 && !row[1]?.startsWith("`n"));
    expect(rows.flatMap(([name]) => codesIn(name)).toSorted()).toEqual(VARIABLES.toSorted());
  });

  it("names every field of an upstream, and the defaults that hold", async () => {
    const rows = await rowsOf(PAGE, "field");
    const schemas: string[] = [];
    for await (const file of glob("src/providers/kinds/**/*.ts", { cwd: ROOT })) {
      const found = (await source(file)).matchAll(
        /schema = atFirstUse\(\(\) =>\s+z\.strictObject\(\{(.*?)\}\),?\n?\);/gs,
      );
      schemas.push(...[...found].map(([, fields = ""]) => fields));
    }
    // The kinds, and the one that records another.
    expect(schemas).toHaveLength(Object.keys(KINDS).length + 1);
    // A field of the schema itself stands deeper by four spaces at most.
    const own = schemas.flatMap((fields) =>
      [...fields.matchAll(/(?:^ {1,4}|, )(\w+): /gm)].map(([, name = ""]) => name),
    );
    const known = new Set([...own, ...Object.keys(commonFields()), ...Object.keys(remoteFields())]);
    expect(rows.flatMap(([name]) => codesIn(name)).toSorted()).toEqual([...known].toSorted());
    const defaults = Object.fromEntries(rows.map(([name, , value]) => [codesIn(name).join(), value]));
    const parsed = parseUpstreams({ a: { kind: "anthropic" } }, {});
    const upstream = parsed.ok ? parsed.upstreams[0] : undefined;
    expect(Number(defaults["max_in_flight"])).toBe(upstream?.maxInFlight);
    expect(Number(defaults["timeout_ms"])).toBe(upstream?.timeoutMs);
    expect(Number(defaults["max_attempts"])).toBe(upstream?.maxAttempts);
    expect(Number(defaults["prompt_tokens_per_byte"])).toBe(upstream?.bounds.tokensPerByte);
    expect(defaults["prompt_tokens_per_call"]).toMatch(new RegExp(`^${upstream?.bounds.fixedTokens} for`));
    expect(defaults["base_url"]).toContain(upstream?.baseUrl);
  });

  it("names every variable that the scripts read", async () => {
    const rows = (await rowsOf(PAGE, "variable")).filter(([, of]) => of?.includes("`np"));
    const named = new Set(rows.flatMap(([name]) => codesIn(name)));
    const scripts = ["start", "local/serve-setting", "demo", "demo-provider", "token-setting"];
    const files = [...scripts.map((name) => `scripts/${name}.ts`), "cli/gateway/requests.ts"];
    const read = new Set<string>();
    for (const file of files) {
      for (const [, name = ""] of (await source(file)).matchAll(/\benv\["(\w+)"\]/g)) read.add(name);
      // Credentials are found by one rule, which gets the names of their variables.
      for (const [, names = ""] of (await source(file)).matchAll(/\bnames: (.*)/g))
        for (const [, name = ""] of names.matchAll(/"([A-Z_]+)"/g)) read.add(name);
    }
    expect([...named].toSorted()).toEqual([...read].toSorted());
  });
});

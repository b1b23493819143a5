import { describe, expect, it } from "vitest";
import { importsOf, unusedRules, violations } from "../../../scripts/dependency-rule.ts";

describe("reading imports", () => {
  it("finds every kind of import and tells types from code", () => {
    const source = [
      'import a, { b } from "./code.ts";',
      'import type { C } from "./types.ts";',
      "import {\n  type D,\n  type E,\n} from './only-types.ts';",
      'import { type F, g } from "./mixed.ts";',
      'import "./effect.ts";',
      'export { h } from "./again.ts";',
      'const later = await import("./later.ts");',
      'type Late = typeof import("./late-type.ts");',
    ].join("\n");
    expect(importsOf(source).map(({ target, isTypeOnly }) => `${target} ${isTypeOnly ? "types" : "code"}`)).toEqual([
      "./code.ts code",
      "./types.ts types",
      "./only-types.ts types",
      "./mixed.ts code",
      "./again.ts code",
      "./effect.ts code",
      "./later.ts code",
      "./late-type.ts types",
    ]);
  });

  it("passes over comments", () => {
    expect(importsOf('/**\n * import x from "./a.ts";\n */\n// import y from "./b.ts";\n')).toEqual([]);
  });
});

describe("the dependency rule", () => {
  const keeps = (path: string, statement: string) => violations(path, statement).length === 0;

  it("lets the core import itself and the words, and nothing else", () => {
    expect(keeps("src/run/steps/a.ts", 'import { b } from "../money/b.ts";')).toBe(true);
    expect(keeps("src/run/steps/a.ts", 'import { b } from "../../limits.ts";')).toBe(true);
    expect(keeps("src/run/a.ts", 'import { b } from "../providers/b.ts";')).toBe(false);
    expect(keeps("src/run/a.ts", 'import type { B } from "../providers/b.ts";')).toBe(false);
    expect(keeps("src/run/a.ts", 'import { z } from "zod";')).toBe(false);
  });

  it("keeps the platform at the edges", () => {
    const statement = 'import { DurableObject } from "cloudflare:workers";';
    expect(keeps("durable-objects/run/object.ts", statement)).toBe(true);
    expect(keeps("src/objects/clients/groups/body-upload.ts", statement)).toBe(true);
    expect(keeps("src/http/native/runs.ts", statement)).toBe(false);
    expect(keeps("src/providers/attempt.ts", statement)).toBe(false);
    expect(keeps("src/http/replies/json.ts", statement)).toBe(false);
    expect(keeps("src/providers/attempt.ts", 'import { readFile } from "node:fs";')).toBe(false);
  });

  it("lets nothing but the app import routes", () => {
    expect(keeps("src/http/app.ts", 'import { runs } from "./native/runs.ts";')).toBe(true);
    expect(keeps("src/index.ts", 'import { runs } from "./http/native/runs.ts";')).toBe(false);
    expect(keeps("durable-objects/run/object.ts", 'import { runs } from "../../src/http/native/runs.ts";')).toBe(false);
  });

  it("lets entrypoints use the application, and no route behind it", () => {
    expect(keeps("src/entrypoints/a.ts", 'import { createApp } from "../http/app.ts";')).toBe(true);
    expect(keeps("src/entrypoints/a.ts", 'import { WorkerEntrypoint } from "cloudflare:workers";')).toBe(true);
    expect(keeps("src/entrypoints/a.ts", 'import { runs } from "../http/native/runs.ts";')).toBe(false);
    expect(keeps("src/entrypoints/a.ts", 'import { openGroup } from "../objects/clients/groups/a.ts";')).toBe(false);
  });

  it("lets routes use the core and the providers, for they execute single calls, but no object", () => {
    expect(keeps("src/http/native/query.ts", 'import { usdOf } from "../../run/money/money.ts";')).toBe(true);
    expect(keeps("src/http/native/query.ts", 'import { attempt } from "../../providers/attempt.ts";')).toBe(true);
    const insides = 'import type { RunState } from "../../../durable-objects/run/state.ts";';
    expect(keeps("src/http/native/query.ts", insides)).toBe(false);
  });

  it("lets the providers look prices up, but of the rest of the core use types only", () => {
    expect(keeps("src/providers/config/registry.ts", 'import { catalogPrice } from "../../run/money/prices.ts";')).toBe(
      true,
    );
    expect(keeps("src/providers/config/registry.ts", 'import { Ledger } from "../../run/money/ledger.ts";')).toBe(
      false,
    );
    expect(
      keeps("src/providers/config/types.ts", 'import type { TokenPrice } from "../../run/money/token-price.ts";'),
    ).toBe(true);
  });

  it("lets routes name objects by the types of their API", () => {
    const statement = 'import type { GroupView } from "../../objects/methods/groups.ts";';
    expect(keeps("src/http/native/query.ts", statement)).toBe(true);
  });

  it("lets routes reach objects by their address only", () => {
    expect(keeps("src/http/native/batch.ts", 'import { runStub } from "../../objects/address.ts";')).toBe(true);
    expect(
      keeps("src/http/native/batch.ts", 'import { RunObject } from "../../../durable-objects/run/object.ts";'),
    ).toBe(false);
  });

  it("lets the contract import what the providers' formats say, and nothing else of the providers", () => {
    expect(
      keeps("src/contract/call.ts", 'import { OWN_PARAMS } from "../providers/formats/request/own-params.ts";'),
    ).toBe(true);
    expect(keeps("src/contract/call.ts", 'import { attempt } from "../providers/attempt.ts";')).toBe(false);
  });

  it("refuses a file that no line of it speaks of", () => {
    expect(violations("src/utils/misc.ts", "")).toEqual([
      "src/utils/misc.ts: no dependency rule speaks of this file; add it to a part",
    ]);
  });

  it("names the file, its part and what it imports", () => {
    expect(violations("src/run/a.ts", 'import { z } from "zod";')).toEqual(["src/run/a.ts: core may not import zod"]);
  });

  it("names parts without files, and permissions that no import uses", () => {
    const source = 'import { b } from "../bytes/b.ts";';
    const unused = unusedRules([{ path: "src/text/sse/a.ts", source }]);
    expect(unused).not.toContain("dependency rule: no file is in the part sse");
    expect(unused).not.toContain("dependency rule: sse may import bytes, but does not");
    expect(unused).toContain("dependency rule: no file is in the part files");
    expect(unused).toContain("dependency rule: files may import bytes, but does not");
  });
});

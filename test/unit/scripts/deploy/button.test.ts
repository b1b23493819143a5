/**
 * What Cloudflare's button reads of this repository: names of resources in wrangler.toml, secrets in .dev.vars.example, and their
 * descriptions in package.json. Source: developers.cloudflare.com/workers/platform/deploy-buttons, July 2026.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "smol-toml";
import { expect, it } from "vitest";
import { z } from "zod";
import { ROOT } from "../../../../scripts/root.ts";
import { parseConfig, VARIABLES } from "../../../../src/env.ts";
import { credentialsOf } from "../../../../src/http/auth/credentials.ts";

const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");
const { cloudflare, scripts } = z
  .object({
    scripts: z.record(z.string(), z.string()),
    cloudflare: z.object({ bindings: z.record(z.string(), z.object({ description: z.string().min(1) })) }),
  })
  .parse(JSON.parse(read("package.json")));
const toml = z
  .looseObject({ name: z.string(), r2_buckets: z.array(z.object({ binding: z.string(), bucket_name: z.string() })) })
  .parse(parse(read("wrangler.toml")));
const asked = parseEnv(read(".dev.vars.example"));

it("asks only for variables that the gateway reads, and describes each, and each bucket", () => {
  const names: readonly string[] = VARIABLES;
  expect(Object.keys(asked).filter((name) => !names.includes(name))).toEqual([]);
  const described = [...Object.keys(asked), ...toml.r2_buckets.map(({ binding }) => binding)];
  expect(Object.keys(cloudflare.bindings).toSorted()).toEqual(described.toSorted());
});

it("opens no gateway with a key that everybody knows: the example's value is refused", () => {
  const parsed = parseConfig(asked);
  expect(parsed.ok && credentialsOf(parsed.config)).toMatchObject({ ok: false });
});

it("deploys by the script that keeps secrets, and has no script that Cloudflare would run before it", () => {
  expect(scripts["deploy"]).toBe("node -- scripts/deploy.ts");
  expect(scripts["build"]).toBeUndefined();
});

/** What a local gateway serves: wrangler.toml, with its variables overridden by the env files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { parse } from "smol-toml";
import { z } from "zod";
import { ROOT } from "../root.ts";

const wranglerToml = z.looseObject({
  name: z.string(),
  main: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()),
  vars: z.record(z.string(), z.json()).default({}),
  durable_objects: z.looseObject({ bindings: z.array(z.looseObject({ name: z.string(), class_name: z.string() })) }),
  r2_buckets: z.array(z.looseObject({ binding: z.string(), bucket_name: z.string() })),
});

/** One Worker with its objects, buckets and variables. `vars` contain secrets: never print them. */
export type LocalPlan = {
  name: string;
  /** Path of the Worker's entry module. */
  main: string;
  compatibilityDate: string;
  compatibilityFlags: readonly string[];
  vars: Record<string, z.core.util.JSONType>;
  /** Class names of the objects, by binding. */
  objects: Record<string, string>;
  /** Names of the buckets, by binding. */
  buckets: Record<string, string>;
};

/** The variables of a local gateway that `wrangler.toml` does not have. They contain secrets: never print them. */
export type LocalSetting = {
  /** The last one that sets a variable counts. */
  envFiles?: readonly string[];
  /** Variables that override those of the files. */
  vars?: Readonly<Record<string, z.core.util.JSONType>>;
};

/** Reads the plan. Values of env files are used literally: dollar signs are not expanded. */
export function localPlan({ envFiles = [], vars: given = {} }: LocalSetting): LocalPlan {
  const toml = wranglerToml.parse(parse(readFileSync(join(ROOT, "wrangler.toml"), "utf8")));
  // On plain workerd any number of fetches can wait for headers; on Cloudflare only six.
  // It can also find out whether a connection can be made; on Cloudflare, hosts behind Cloudflare refuse such connections.
  const vars: LocalPlan["vars"] = { WAITING_FETCHES_MAX: "512", CONNECT_FIRST: "1", ...toml.vars };
  for (const file of envFiles) {
    for (const [name, value] of Object.entries(parseEnv(readFileSync(file, "utf8")))) vars[name] = value ?? "";
  }
  return {
    name: toml.name,
    main: join(ROOT, toml.main),
    compatibilityDate: toml.compatibility_date,
    compatibilityFlags: toml.compatibility_flags,
    vars: { ...vars, ...given },
    objects: Object.fromEntries(toml.durable_objects.bindings.map(({ name, class_name }) => [name, class_name])),
    buckets: Object.fromEntries(toml.r2_buckets.map(({ binding, bucket_name }) => [binding, bucket_name])),
  };
}

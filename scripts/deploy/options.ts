/** The options of `npm run deploy -- …`. */
import { parseArgs } from "node:util";

export type DeployOptions = {
  /** Does everything that needs no account, and uploads nothing. */
  isDryRun: boolean;
  /** Leaves out what Cloudflare's free plan refuses. */
  isFree: boolean;
  /** Deploys without files and /v1/batches. */
  hasNoR2: boolean;
  /** Binds Workers AI, and adds an upstream that answers over it. */
  usesWorkersAi: boolean;
  /** Replaces all objects at once, with the calls that they have in flight. */
  isImmediate: boolean;
  /** Replaces ADMIN_KEY by a new one. */
  makesAdminKey: boolean;
  /** Replaces SIGNING_KEY by a new one. */
  makesSigningKey: boolean;
  /** The name of the Worker, instead of that in wrangler.toml. */
  name: string | null;
  /** Deploys a second Worker with settings of its own. */
  environment: string | null;
  /** Settings of the deployed Worker that may be lost. */
  drop: readonly string[];
  /** Cloudflare itself builds and deploys a repository (Workers Builds): nobody can read what is written here. */
  isBuild: boolean;
};

const OPTIONS = {
  "dry-run": { type: "boolean", default: false },
  free: { type: "boolean", default: false },
  "without-r2": { type: "boolean", default: false },
  "workers-ai": { type: "boolean", default: false },
  name: { type: "string" },
  env: { type: "string" },
  immediate: { type: "boolean", default: false },
  "new-key": { type: "boolean", default: false },
  "new-signing-key": { type: "boolean", default: false },
  drop: { type: "string", multiple: true },
} as const;

/** All options, as they are typed. */
export const OPTION_NAMES: readonly string[] = Object.keys(OPTIONS).map((name) => `--${name}`);

/** Names become a part of an address below workers.dev: letters, digits and dashes, at most 63. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Reads the arguments; a text says what is wrong with them. */
export function deployOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
): DeployOptions | string {
  const nameIn = (arg: string) => arg.slice(2).split("=", 1)[0] ?? "";
  const unknown = args.find((arg) => arg.startsWith("--") && !Object.hasOwn(OPTIONS, nameIn(arg)));
  const accepted = `npm run deploy accepts ${OPTION_NAMES.slice(0, -1).join(", ")} and ${OPTION_NAMES.at(-1)}.`;
  if (unknown !== undefined) return `Unknown option: ${unknown}. ${accepted}`;
  let values;
  try {
    ({ values } = parseArgs({ args: [...args], options: OPTIONS }));
  } catch {
    return `The options are not complete: --name, --env and --drop need a value, the others have none. ${accepted}`;
  }
  for (const option of ["name", "env"] as const) {
    const value = values[option];
    if (value !== undefined && !NAME.test(value)) {
      return `--${option} must be 1 to 63 lower-case letters, digits and dashes, with no dash at its ends.`;
    }
  }
  return {
    isDryRun: values["dry-run"],
    isFree: values.free,
    hasNoR2: values["without-r2"],
    usesWorkersAi: values["workers-ai"],
    isImmediate: values.immediate,
    makesAdminKey: values["new-key"],
    makesSigningKey: values["new-signing-key"],
    name: values.name ?? null,
    environment: values.env ?? null,
    isBuild: env["WORKERS_CI"] === "1",
    drop: (values.drop ?? []).flatMap((names) => names.split(",")).map((name) => name.trim()),
  };
}

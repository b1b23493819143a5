/** The configuration of plain workerd that replaces wrangler.toml: same compatibility, same objects, storage on disk. */

export type CapnpConfigOptions = {
  /** Text of wrangler.toml, which stays the one place that names compatibility and objects. */
  wranglerToml: string;
  vars: Record<string, unknown>;
  dataDir: string;
  /** 0 = a free one. */
  port: number;
  /**
   * Text of the wrangler.toml of another version, which serves the objects that it has from `objects.mjs`; null = the
   * gateway serves all of its objects itself.
   */
  objectsToml?: string | null;
  /** Host and port of a server behind the binding of Workers AI; null = there is no such binding. */
  ai?: string | null;
};

/** The binding as workerd makes it in production: its own module over a service, which is another one here. */
const AI_BINDING = `(name = "AI", wrapped = (
    moduleName = "cloudflare-internal:ai-api", innerBindings = [(name = "fetcher", service = "ai")]
  ))`;

/** An object class as bound in wrangler.toml. */
type Bound = { binding: string; className: string };

/** Text of a workerd configuration that serves `gateway.mjs` beside it on socket `http`. */
export function capnpConfig({
  wranglerToml,
  vars,
  dataDir,
  port,
  objectsToml = null,
  ai = null,
}: CapnpConfigOptions): string {
  const bound = boundIn(wranglerToml);
  const others = objectsToml === null ? [] : boundIn(objectsToml);
  const isOther = ({ className }: Bound): boolean => others.some((other) => other.className === className);
  const own = bound.filter((each) => !isOther(each));
  const worker = (name: string, toml: string, classes: readonly Bound[], bindings: readonly string[]): string =>
    `const ${name} :Workerd.Worker = (
  modules = [(name = "${name}.mjs", esModule = embed "${name}.mjs")],
  compatibilityDate = ${text(found(toml, /^compatibility_date = "([^"]+)"/m))},
  compatibilityFlags = [${flagsIn(toml).map(text).join(", ")}],
  bindings = [${[...bindings, ...Object.entries(vars).map(([key, value]) => `(name = ${text(key)}, ${binding(value)})`)].join(", ")}],
  durableObjectNamespaces = [${classes.map(namespace).join(", ")}],
  durableObjectStorage = (localDisk = "disk"),
  globalOutbound = "internet",
);
`;
  const models = ai === null ? [] : [AI_BINDING];
  const services = [
    ...(ai === null ? [] : [`(name = "ai", external = (address = ${text(ai)}, http = ()))`]),
    `(name = "gateway", worker = .gateway)`,
    ...(objectsToml === null ? [] : [`(name = "objects", worker = .objects)`]),
    `(name = "internet", network = (
      allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true)
    ))`,
    `(name = "disk", disk = (path = ${text(dataDir)}, writable = true))`,
  ];
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    ${services.join(",\n    ")},
  ],
  sockets = [(name = "http", address = ${text(`127.0.0.1:${port}`)}, http = (), service = "gateway")],
);

${worker("gateway", wranglerToml, own, [
  ...models,
  ...bound.map((each) => objectBinding(each, isOther(each) ? "objects" : null)),
])}
${
  objectsToml === null
    ? ""
    : worker("objects", objectsToml, others, [...models, ...others.map((each) => objectBinding(each, null))])
}`;
}

function boundIn(wranglerToml: string): Bound[] {
  return [...wranglerToml.matchAll(/\{ name = "(\w+)", class_name = "(\w+)" \}/g)].map(
    ([, name = "", className = ""]) => ({ binding: name, className }),
  );
}

function flagsIn(wranglerToml: string): string[] {
  const listed = found(wranglerToml, /^compatibility_flags = \[(.*)\]$/m);
  return [...listed.matchAll(/"([^"]+)"/g)].map(([, flag = ""]) => flag);
}

function objectBinding({ binding: name, className }: Bound, service: string | null): string {
  if (service === null) return `(name = ${text(name)}, durableObjectNamespace = ${text(className)})`;
  const designator = `(className = ${text(className)}, serviceName = ${text(service)})`;
  return `(name = ${text(name)}, durableObjectNamespace = ${designator})`;
}

/** An object's key names its directory on disk, so it must be the same after a restart. */
function namespace({ className }: Bound): string {
  return `(className = ${text(className)}, uniqueKey = ${text(`fanout-${className}`)}, enableSql = true)`;
}

function binding(value: unknown): string {
  return typeof value === "string" ? `text = ${text(value)}` : `json = ${text(JSON.stringify(value))}`;
}

/** A capnp text literal: JSON's, but for control characters, which capnp writes in hexadecimal. */
function text(value: string): string {
  return JSON.stringify(value).replace(/\\(?:u00([0-9a-f]{2})|.)/g, (escape, hex: string | undefined) =>
    hex === undefined ? escape : `\\x${hex}`,
  );
}

function found(source: string, pattern: RegExp): string {
  const value = pattern.exec(source)?.[1];
  if (value === undefined) throw new Error(`wrangler.toml has no ${pattern}`);
  return value;
}

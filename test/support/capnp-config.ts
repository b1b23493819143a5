/** The configuration of plain workerd that replaces wrangler.toml: same compatibility, same objects, storage on disk. */

export type CapnpConfigOptions = {
  /** Text of wrangler.toml, which stays the one place that names compatibility and objects. */
  wranglerToml: string;
  vars: Record<string, unknown>;
  dataDir: string;
  /** 0 = a free one. */
  port: number;
};

/** Text of a workerd configuration that serves `gateway.mjs` beside it on socket `http`. */
export function capnpConfig({ wranglerToml, vars, dataDir, port }: CapnpConfigOptions): string {
  const objects = [...wranglerToml.matchAll(/\{ name = "(\w+)", class_name = "(\w+)" \}/g)].map(
    ([, binding = "", className = ""]) => ({ binding, className }),
  );
  const flags = [...found(wranglerToml, /^compatibility_flags = \[(.*)\]$/m).matchAll(/"([^"]+)"/g)];
  const bindings = [
    ...objects.map(
      ({ binding, className }) => `(name = ${text(binding)}, durableObjectNamespace = ${text(className)})`,
    ),
    ...Object.entries(vars).map(([name, value]) => `(name = ${text(name)}, ${binding(value)})`),
  ];
  // An object's key names its directory on disk, so it must be the same after a restart.
  const namespaces = objects.map(
    ({ className }) => `(className = ${text(className)}, uniqueKey = ${text(`fanout-${className}`)}, enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "gateway", worker = .gateway),
    (name = "internet", network = (
      allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true)
    )),
    (name = "disk", disk = (path = ${text(dataDir)}, writable = true)),
  ],
  sockets = [(name = "http", address = ${text(`127.0.0.1:${port}`)}, http = (), service = "gateway")],
);

const gateway :Workerd.Worker = (
  modules = [(name = "gateway.mjs", esModule = embed "gateway.mjs")],
  compatibilityDate = ${text(found(wranglerToml, /^compatibility_date = "([^"]+)"/m))},
  compatibilityFlags = [${flags.map(([, flag = ""]) => text(flag)).join(", ")}],
  bindings = [${bindings.join(", ")}],
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "disk"),
  globalOutbound = "internet",
);
`;
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

/** Stands for @cloudflare/sandbox 0.12.10: the calls of docs/sandboxes.md, and no others. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export class ContainerProxy {
  fetch() {
    throw new Error("no container runs here");
  }
}

/** A sandbox: a folder, in which real processes run with the variables given and no others. */
export class Sandbox {
  #folder = mkdtempSync(join(tmpdir(), "fanout-sandbox-"));
  #env = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: "1" };
  enableInternet = true;

  async setAllowedHosts(hosts) {
    if (!Array.isArray(hosts) || hosts.some((host) => host.includes("/"))) throw new TypeError("expected hosts");
  }

  async setEnvVars(vars) {
    Object.assign(this.#env, vars);
  }

  async writeFile(path, content) {
    const file = join(this.#folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }

  async exec(command, { cwd = "/" } = {}) {
    const cwdHere = join(this.#folder, cwd);
    const { status, stdout, stderr } = spawnSync("bash", ["-c", command], {
      cwd: cwdHere,
      env: this.#env,
      encoding: "utf8",
    });
    return { success: status === 0, exitCode: status, stdout, stderr, command };
  }

  async destroy() {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** In place of a namespace, the class itself. */
export function getSandbox(SandboxClass, id) {
  if (!/^[a-zA-Z0-9-]{1,63}$/.test(id)) throw new TypeError("expected an id that can be a host's label");
  const sandbox = new SandboxClass();
  if (sandbox.enableInternet) throw new TypeError("expected a sandbox that is kept from the internet");
  return sandbox;
}

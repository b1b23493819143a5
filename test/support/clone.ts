/** A clone of this checkout, in which commands may write files: what git ignores is not in it, but the packages are. */
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../scripts/root.ts";

const COPIED = ["durable-objects", "package.json", "scripts", "src", "stubs", "tsconfig.json", "ui", "wrangler.toml"];

export type Clone = { folder: string; remove(): Promise<void> };

export async function makeClone(): Promise<Clone> {
  const folder = await mkdtemp(join(tmpdir(), "fanout-clone-"));
  for (const name of COPIED) {
    await cp(join(ROOT, name), join(folder, name), { recursive: true, filter: (path) => !path.includes("/dist/") });
  }
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** The operator's key of a local gateway, kept where `wrangler dev` looks for secrets. */
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";

/** The value that an env file's text gives a name; undefined where it gives none or an empty one. */
export function valueIn(text: string, name: string): string | undefined {
  return parseEnv(text)[name] || undefined;
}

/**
 * The text of an env file that surely names an ADMIN_KEY: the text itself if it does, else with `freshKey` as its last
 * line. An empty `ADMIN_KEY=` is dropped; every other line stays as it is.
 */
export function withAdminKey(text: string, freshKey: string): string {
  if (valueIn(text, "ADMIN_KEY") !== undefined) return text;
  const kept = text.replace(/^[ \t]*(export[ \t]+)?ADMIN_KEY[ \t]*=.*\n?/gm, "");
  const separator = kept === "" || kept.endsWith("\n") ? "" : "\n";
  return `${kept}${separator}ADMIN_KEY=${freshKey}\n`;
}

/**
 * Sees to it that the file names an ADMIN_KEY; returns true if one had to be written. The file is then readable by its
 * owner only, and it is replaced whole, so that a crash leaves the old one.
 */
export function ensureAdminKey(path: string, freshKey: string): boolean {
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  const after = withAdminKey(before, freshKey);
  if (after === before) return false;
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, after, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
  return true;
}

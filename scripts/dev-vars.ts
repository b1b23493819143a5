/** The secrets of a local gateway, stored where `wrangler dev` reads secrets. */
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { randomBytes } from "node:crypto";

/** New random secrets of 32 characters. */
export function freshKeys(): { adminKey: string; signingKey: string } {
  const fresh = (): string => randomBytes(24).toString("base64url");
  return { adminKey: fresh(), signingKey: fresh() };
}

/** The value of a name in the text of an env file; undefined if it is missing or empty. */
export function valueIn(text: string, name: string): string | undefined {
  return parseEnv(text)[name] || undefined;
}

/**
 * The text of an env file with an ADMIN_KEY: unchanged if it has one, otherwise with `freshKey` as its last line. An empty
 * `ADMIN_KEY=` is removed; all other lines are unchanged.
 */
export function withAdminKey(text: string, freshKey: string): string {
  if (valueIn(text, "ADMIN_KEY") !== undefined) return text;
  const kept = text.replace(/^[ \t]*(export[ \t]+)?ADMIN_KEY[ \t]*=.*\n?/gm, "");
  const separator = kept === "" || kept.endsWith("\n") ? "" : "\n";
  return `${kept}${separator}ADMIN_KEY=${freshKey}\n`;
}

/** The same with a SIGNING_KEY beside a new ADMIN_KEY. Tokens of a gateway that has run without one stay valid: it gets none. */
export function withKeys(text: string, fresh: { adminKey: string; signingKey: string }): string {
  const after = withAdminKey(text, fresh.adminKey);
  return after === text || valueIn(text, "SIGNING_KEY") !== undefined
    ? after
    : `${after}SIGNING_KEY=${fresh.signingKey}\n`;
}

/**
 * Adds an ADMIN_KEY and a SIGNING_KEY to the file if it has no ADMIN_KEY; returns true if it wrote one. The file is then readable
 * by its owner only. It is replaced atomically, so that a crash leaves the old one.
 */
export function ensureKeys(path: string, fresh: { adminKey: string; signingKey: string }): boolean {
  const before = existsSync(path) ? readFileSync(path, "utf8") : "";
  const after = withKeys(before, fresh);
  if (after === before) return false;
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, after, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
  return true;
}

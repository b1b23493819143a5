/** Secrets in env files: of a local gateway, where `wrangler dev` reads them, and of a deployment. */
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { randomBytes } from "node:crypto";

/** A new random secret of 32 characters. */
export function freshKey(): string {
  return randomBytes(24).toString("base64url");
}

/** New random secrets of a gateway. */
export function freshKeys(): { adminKey: string; signingKey: string } {
  return { adminKey: freshKey(), signingKey: freshKey() };
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
  return valueIn(text, "ADMIN_KEY") === undefined ? withVariable(text, "ADMIN_KEY", freshKey) : text;
}

/** The text of an env file with a variable as its last line, and without other lines that set it. */
function withVariable(text: string, name: string, value: string): string {
  const kept = text.replace(new RegExp(`^[ \\t]*(export[ \\t]+)?${name}[ \\t]*=.*\\n?`, "gm"), "");
  const separator = kept === "" || kept.endsWith("\n") ? "" : "\n";
  return `${kept}${separator}${name}=${value}\n`;
}

/** The same with a SIGNING_KEY beside a new ADMIN_KEY. Tokens of a gateway that has run without one stay valid: it gets none. */
export function withKeys(text: string, fresh: { adminKey: string; signingKey: string }): string {
  const after = withAdminKey(text, fresh.adminKey);
  return after === text || valueIn(text, "SIGNING_KEY") !== undefined
    ? after
    : `${after}SIGNING_KEY=${fresh.signingKey}\n`;
}

/** Adds an ADMIN_KEY and a SIGNING_KEY to the file if it has no ADMIN_KEY; returns true if it wrote one. */
export function ensureKeys(path: string, fresh: { adminKey: string; signingKey: string }): boolean {
  const before = textOf(path);
  const after = withKeys(before, fresh);
  if (after === before) return false;
  replaceFile(path, after);
  return true;
}

/** Sets variables of an env file, replacing their values. The values need no quotes. */
export function setVariables(path: string, values: Record<string, string>): void {
  const set = Object.entries(values).reduce((text, [name, value]) => withVariable(text, name, value), textOf(path));
  replaceFile(path, set);
}

function textOf(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Replaces the file atomically, so that a crash leaves the old one. Only its owner can read the new one. */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, text, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureAdminKey, valueIn, withAdminKey } from "../../../scripts/dev-vars.ts";

describe("withAdminKey", () => {
  it("writes the key into an empty file", () => {
    expect(withAdminKey("", "fresh")).toBe("ADMIN_KEY=fresh\n");
  });

  it("keeps every other line as it is", () => {
    expect(withAdminKey("# mine\nA='1 # 2'\n", "fresh")).toBe("# mine\nA='1 # 2'\nADMIN_KEY=fresh\n");
    expect(withAdminKey("A=1", "fresh")).toBe("A=1\nADMIN_KEY=fresh\n");
  });

  it.each(["ADMIN_KEY=mine\n", `A=1\nADMIN_KEY="mine"`, "export ADMIN_KEY='mine'\n"])("leaves %j alone", (text) => {
    expect(withAdminKey(text, "fresh")).toBe(text);
  });

  it("replaces an empty key", () => {
    expect(withAdminKey("A=1\nADMIN_KEY=\nB=2\n", "fresh")).toBe("A=1\nB=2\nADMIN_KEY=fresh\n");
    expect(withAdminKey(`ADMIN_KEY=""`, "fresh")).toBe("ADMIN_KEY=fresh\n");
  });

  it("takes a name that only ends like the key's, or a comment, for no key", () => {
    expect(valueIn(withAdminKey("MY_ADMIN_KEY=x\n# ADMIN_KEY=y\n", "fresh"), "ADMIN_KEY")).toBe("fresh");
  });
});

describe("ensureAdminKey", () => {
  let folder = "";
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-test-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it("makes the file for its owner only, and leaves no draft", () => {
    const file = join(folder, ".dev.vars");
    expect(ensureAdminKey(file, "fresh")).toBe(true);
    expect(readFileSync(file, "utf8")).toBe("ADMIN_KEY=fresh\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual([".dev.vars"]);
  });

  it("closes a file to others when it adds a key to it", () => {
    const file = join(folder, ".dev.vars");
    writeFileSync(file, "A=1\n", { mode: 0o644 });
    expect(ensureAdminKey(file, "fresh")).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("writes one key only once", () => {
    const file = join(folder, ".dev.vars");
    ensureAdminKey(file, "first");
    expect(ensureAdminKey(file, "second")).toBe(false);
    expect(readFileSync(file, "utf8")).toBe("ADMIN_KEY=first\n");
  });
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ensureKeys, freshKeys, setVariables, valueIn, withAdminKey, withKeys } from "../../../scripts/dev-vars.ts";
import { SECRET_CHARS_MIN } from "../../../src/limits.ts";

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

const keysNamed = (name: string) => ({ adminKey: name, signingKey: `${name}-signs` });

describe("withKeys", () => {
  it("writes a signing key beside a new operator's key", () => {
    expect(withKeys("A=1", keysNamed("fresh"))).toBe("A=1\nADMIN_KEY=fresh\nSIGNING_KEY=fresh-signs\n");
    expect(withKeys("SIGNING_KEY=mine\n", keysNamed("fresh"))).toBe("SIGNING_KEY=mine\nADMIN_KEY=fresh\n");
  });

  it("keeps the tokens of a gateway that has an operator's key and derives its signing key from it", () => {
    expect(withKeys("ADMIN_KEY=mine\n", keysNamed("fresh"))).toBe("ADMIN_KEY=mine\n");
  });

  it("makes keys that the gateway accepts, and never the same twice", () => {
    const { adminKey, signingKey } = freshKeys();
    const keys = [adminKey, signingKey, freshKeys().adminKey];
    expect(keys.filter((key) => key.length < SECRET_CHARS_MIN)).toEqual([]);
    expect(new Set(keys).size).toBe(3);
  });
});

describe("ensureKeys", () => {
  let folder = "";
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-test-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  it("makes the file for its owner only, and leaves no draft", () => {
    const file = join(folder, ".dev.vars");
    expect(ensureKeys(file, keysNamed("fresh"))).toBe(true);
    expect(readFileSync(file, "utf8")).toBe("ADMIN_KEY=fresh\nSIGNING_KEY=fresh-signs\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual([".dev.vars"]);
  });

  it("closes a file to others when it adds a key to it", () => {
    const file = join(folder, ".dev.vars");
    writeFileSync(file, "A=1\n", { mode: 0o644 });
    expect(ensureKeys(file, keysNamed("fresh"))).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("writes one key only once", () => {
    const file = join(folder, ".dev.vars");
    ensureKeys(file, keysNamed("first"));
    expect(ensureKeys(file, keysNamed("second"))).toBe(false);
    expect(readFileSync(file, "utf8")).toBe("ADMIN_KEY=first\nSIGNING_KEY=first-signs\n");
  });
});

describe("setVariables", () => {
  it("replaces values and adds new ones at the end, and closes the file to others", () => {
    const folder = mkdtempSync(join(tmpdir(), "fanout-test-"));
    const file = join(folder, ".deploy.vars");
    writeFileSync(file, "# mine\nADMIN_KEY=old\nA='1 # 2'", { mode: 0o644 });
    setVariables(file, { ADMIN_KEY: "new", SIGNING_KEY: "s" });
    expect(readFileSync(file, "utf8")).toBe("# mine\nA='1 # 2'\nADMIN_KEY=new\nSIGNING_KEY=s\n");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    rmSync(folder, { recursive: true });
  });
});

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { claimFolder } from "../../../scripts/local/claim-folder.ts";

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "fanout-claim-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const claimFile = (): string => join(folder, "gateway.pid");

describe("a folder of state", () => {
  it("is created, claimed and released without a trace", () => {
    const claim = claimFolder(join(folder, "new"));
    expect(claim).toMatchObject({ wasLeft: false });
    if ("release" in claim) claim.release();
    expect(readdirSync(join(folder, "new"))).toEqual([]);
  });

  it("is refused while another process uses it", () => {
    const other = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    try {
      writeFileSync(claimFile(), String(other.pid));
      expect(claimFolder(folder)).toEqual({ usedBy: other.pid });
    } finally {
      other.kill("SIGKILL");
    }
  });

  it("is taken over from a process that has ended", () => {
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    writeFileSync(claimFile(), String(pid));
    expect(claimFolder(folder)).toMatchObject({ wasLeft: true });
  });

  it.each(["", "not a number", String(process.pid)])("is taken over from a claim of %j", (text) => {
    writeFileSync(claimFile(), text);
    expect(claimFolder(folder)).toMatchObject({ wasLeft: true });
  });
});

/** Every object of a gateway with a jurisdiction is inside it, and an id says which one it is of. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { REGIONS } from "../../src/contract/fields.ts";
import { batchIdOf, runIdOf } from "../../src/objects/address.ts";
import { isInside, jurisdictionIn, JURISDICTIONS, placeOf, regionsInside } from "../../src/jurisdiction.ts";

const DIGITS = "0123456789abcdef".repeat(4);

/** Says how an id was made. */
const reader = {
  idFromName: (name: string) => idOf(`name ${name}`),
  idFromString: (digits: string) => idOf(`digits ${digits}`),
};

function idOf(text: string) {
  return { toString: () => text, equals: (other: { toString: () => string }) => other.toString() === text };
}

describe("the id of a run", () => {
  it.each([
    [null, `run_${DIGITS}`, `digits ${DIGITS}`],
    ["eu", `run_eu_${DIGITS}`, `digits ${DIGITS}`],
    ["fedramp", `run_fedramp_${DIGITS}`, `digits ${DIGITS}`],
  ] as const)("of %s is found by the id of its object in it", (jurisdiction, runId, found) => {
    expect(runIdOf(reader, runId, jurisdiction).toString()).toBe(found);
  });

  it.each([
    ["eu", `run_${DIGITS.replace("0", "1")}`],
    ["eu", `run_us_${DIGITS}`],
    ["us", `run_eu_${DIGITS.replace("0", "2")}`],
    [null, `run_us_${DIGITS.replace("0", "3")}`],
    ["eu", "run_eu_0123"],
  ] as const)("of elsewhere is the id of no run: at %s, %s", (jurisdiction, runId) => {
    expect(runIdOf(reader, runId, jurisdiction).toString()).toBe(`name ${runId}`);
  });
});

it.each(["batch_", "msgbatch_"])("the id of a batch is read in its jurisdiction only: %s", (prefix) => {
  expect(batchIdOf(reader, "run_eu_1", `${prefix}eu_${DIGITS}`, "eu").toString()).toBe(`digits ${DIGITS}`);
  expect(batchIdOf(reader, "run_eu_1", `${prefix}${DIGITS}`, "eu").toString()).toBe(`name run_eu_1/${prefix}${DIGITS}`);
  expect(batchIdOf(reader, "run_1", `${prefix}${DIGITS}`).toString()).toBe(`digits ${DIGITS}`);
});

describe("the variable", () => {
  it("names a jurisdiction, or is not set", () => {
    for (const value of [undefined, null, ""]) expect(jurisdictionIn(value)).toBeNull();
    for (const value of JURISDICTIONS) expect(jurisdictionIn(value)).toBe(value);
    for (const value of ["EU", "europe", 1, "fedramp-high"]) expect(jurisdictionIn(value)).toBeUndefined();
  });

  it("makes no object at all if it is wrong", () => {
    expect(() => placeOf({ JURISDICTION: "europe" })).toThrow("JURISDICTION");
  });
});

it("has regions inside, which a run may begin in, and others", () => {
  for (const jurisdiction of JURISDICTIONS) {
    const inside = REGIONS.filter((region) => isInside(region, jurisdiction));
    expect(inside.join(" or ")).toBe(regionsInside(jurisdiction));
    expect(inside.length).toBeLessThan(REGIONS.length);
  }
  expect(REGIONS.filter((region) => !isInside(region, null))).toEqual([]);
});

it("is applied by the one file that turns ids into stubs, and no other reads a namespace", () => {
  const reading = ["src", "durable-objects"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name))
      .filter((path) =>
        /\.(RUN|LANE|DIRECTORY|BATCH|SHELF|UPSTREAM|GATES|CASSETTE|PROVIDER_BATCH)\b/.test(readFileSync(path, "utf8")),
      ),
  );
  expect(reading).toEqual(["src/objects/address.ts"]);
  const text = readFileSync("src/objects/address.ts", "utf8");
  const used = [...text.matchAll(/(\w*\(?)objects\.([A-Z_]{3,})/g)];
  expect(used.length).toBeGreaterThan(8);
  expect(used.filter(([, before]) => before !== "placed(").map(([found]) => found)).toEqual([]);
});

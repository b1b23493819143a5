/**
 * Where the law lets a gateway keep its data. Cloudflare runs and stores an object of a jurisdiction only there:
 * https://developers.cloudflare.com/durable-objects/reference/data-location/ (November 2026), and the same of buckets:
 * https://developers.cloudflare.com/r2/reference/data-location/.
 */

/** Those that objects and buckets both have. */
export const JURISDICTIONS = ["eu", "fedramp", "us"] as const;
export type Jurisdiction = (typeof JURISDICTIONS)[number];

/** The regions inside: a hint of another one would ask for what must not be. */
const REGIONS_INSIDE: Readonly<Record<Jurisdiction, readonly string[]>> = {
  eu: ["weur", "eeur"],
  fedramp: ["wnam", "enam"],
  us: ["wnam", "enam"],
};

/** Whether an object may begin in a region. */
export function isInside(region: string, jurisdiction: Jurisdiction | null): boolean {
  return jurisdiction === null || REGIONS_INSIDE[jurisdiction].includes(region);
}

/** The regions in which an object of the jurisdiction may begin, for messages. */
export function regionsInside(jurisdiction: Jurisdiction): string {
  return REGIONS_INSIDE[jurisdiction].join(" or ");
}

/** The variable's value; undefined if it names no jurisdiction. */
export function jurisdictionIn(value: unknown): Jurisdiction | null | undefined {
  if (value === undefined || value === null || value === "") return null;
  return JURISDICTIONS.find((each) => each === value);
}

/** The variable JURISDICTION as the Worker has it. */
export type Placed = { JURISDICTION?: unknown };

/** Throws where the variable is wrong: the configuration refuses it first, and no object may be made in the wrong place. */
export function placeOf({ JURISDICTION: value }: Placed): Jurisdiction | null {
  const jurisdiction = jurisdictionIn(value);
  if (jurisdiction === undefined) throw new Error("JURISDICTION names none");
  return jurisdiction;
}

/** Where in the world a client is, as a region in which its run may begin. */
import type { Region } from "../../contract/fields.ts";
import { isInside, type Jurisdiction } from "../../jurisdiction.ts";

/** Longitudes that part the continents with two regions: the middle of North America, of Europe, the Gulf's east. */
const NORTH_AMERICA_EAST_FROM = -100;
const EUROPE_EAST_FROM = 17;
const ASIA_PACIFIC_FROM = 60;

/**
 * The region of a client, by what Cloudflare reports of its address; null if that is not enough. A run without a region begins
 * near the place of the network that serves its first request, so a doubtful answer is worse than none. Null also for a region outside of
 * the gateway's jurisdiction, which chooses itself.
 */
export function regionOf(cf: unknown, jurisdiction: Jurisdiction | null = null): Region | null {
  const region = nearestTo(cf);
  return region !== null && isInside(region, jurisdiction) ? region : null;
}

function nearestTo(cf: unknown): Region | null {
  if (typeof cf !== "object" || cf === null) return null;
  const continent: unknown = Reflect.get(cf, "continent");
  const longitude = degreesOf(Reflect.get(cf, "longitude"));
  switch (continent) {
    case "SA":
      return "sam";
    case "AF":
      return "afr";
    case "OC":
      return "oc";
    case "NA":
      return eastOf(longitude, NORTH_AMERICA_EAST_FROM, "wnam", "enam");
    case "EU":
      return eastOf(longitude, EUROPE_EAST_FROM, "weur", "eeur");
    case "AS":
      return eastOf(longitude, ASIA_PACIFIC_FROM, "me", "apac");
    default:
      return null;
  }
}

function eastOf(longitude: number | null, from: number, west: Region, east: Region): Region | null {
  if (longitude === null) return null;
  return longitude < from ? west : east;
}

/** Degrees arrive as text. */
function degreesOf(value: unknown): number | null {
  const degrees = typeof value === "string" && value.trim() !== "" ? Number(value) : NaN;
  return Number.isFinite(degrees) && Math.abs(degrees) <= 180 ? degrees : null;
}

/** The place of the comparison in README. */

const PLACE = /(<!-- Written by npm run bench -- --write-docs\. -->\n).*?(\n<!-- End of what it writes\. -->)/s;

/** The table that README shows; null if its marks are missing. */
export function comparisonIn(readme: string): string | null {
  const place = PLACE.exec(readme);
  return place === null ? null : place[0].slice(place[1]?.length, -(place[2]?.length ?? 0));
}

export function withComparison(readme: string, table: string): string {
  if (!PLACE.test(readme)) throw new Error("README.md has no place for the comparison");
  return readme.replace(PLACE, (_, before: string, after: string) => `${before}${table}${after}`);
}

/** The courses of a campaign: after each bundle of requests, one of each kind at each gateway. */
import { Random } from "../../../bench/adversary/random.ts";
import type { Site } from "../place.ts";
import type { Course } from "./course.ts";
import { groups } from "./groups.ts";
import { lines } from "./lines.ts";
import { sockets } from "./sockets.ts";
import { tools } from "./tools.ts";
import { uploads } from "./uploads.ts";

const COURSES: readonly { name: string; course: Course; needsFiles: boolean }[] = [
  { name: "groups", course: groups, needsFiles: false },
  { name: "sockets", course: sockets, needsFiles: false },
  { name: "tools", course: tools, needsFiles: false },
  { name: "uploads", course: uploads, needsFiles: true },
  { name: "lines", course: lines, needsFiles: true },
];

/** Sends them at once, and returns what was wrong. The same seed and number draw the same courses. */
export async function courseFaults(site: Site, { seed, after }: { seed: number; after: number }): Promise<string[]> {
  const sent = [...COURSES.entries()].filter(([, { needsFiles }]) => site.hasFiles || !needsFiles);
  const found = await Promise.all(
    sent.map(async ([at, { name, course }]) => {
      const random = new Random(seed, after, at, Number(site.hasFiles));
      const faults = await course(site, random).catch((error: unknown) => [`throws ${String(error)}`]);
      return faults.map((fault) => `in the course of ${name}, ${fault}`);
    }),
  );
  return found.flat();
}

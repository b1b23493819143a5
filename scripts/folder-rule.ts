/** The most files that a folder of code may contain: a reader can survey a list of twenty names, but not one of eighty. */
import { posix } from "node:path";

/** Most code files directly in one folder. */
export const FOLDER_FILES_MAX = 20;

/** One sentence per folder with too many of these files (paths with forward slashes). */
export function crowdedFolders(paths: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_FILES_MAX)
    .map(
      ([folder, count]) =>
        `${folder}: ${count} files, at most ${FOLDER_FILES_MAX} are allowed; sort them into folders by subject`,
    )
    .toSorted();
}

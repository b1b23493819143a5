/**
 * The floors of the code. The map in CONTRIBUTING.md lists each folder once, with what it holds; of the folders beside
 * each other, the lower one stands first. No import goes up: a folder imports only folders that stand before it. No
 * files and folders beside each other form a circle, types included.
 */
import { posix } from "node:path";
import { importsOf } from "./dependency-rule.ts";

type Source = { path: string; source: string };

/** What the map says of a folder; `holds` is its sentence. */
export type Room = { folder: string; holds: string };

/** Reads the rows of the map: lines of a table whose first cell is a folder of src, durable-objects or cli. */
export function roomsOf(markdown: string): Room[] {
  const rows = markdown.matchAll(/^\| `((?:src|durable-objects|cli)(?:\/[\w./-]+)?)` \| (.+?) \|$/gm);
  return [...rows].map(([, folder = "", holds = ""]) => ({ folder, holds }));
}

/** Differences between the map and the folders of these files, as sentences. */
export function unlisted(rooms: readonly Room[], paths: readonly string[]): string[] {
  const folders = new Set(paths.flatMap(ancestors));
  const listed = rooms.map(({ folder }) => folder);
  return [
    ...[...folders].filter((folder) => !listed.includes(folder)).map((folder) => `${folder}: the map does not list it`),
    ...listed
      .filter((folder) => !folders.has(folder))
      .map((folder) => `${folder}: the map lists it, but it has no file`),
    ...listed
      .filter((folder, row) => listed.indexOf(folder) !== row)
      .map((folder) => `${folder}: the map lists it twice`),
  ];
}

/** Imports from a folder to one beside it that stands later in the map, as sentences. */
export function upwardImports(rooms: readonly Room[], files: readonly Source[]): string[] {
  const floorOf = new Map(rooms.map(({ folder }, floor) => [folder, floor]));
  return pairs(files).flatMap(({ from, to, room, other }) => {
    const floor = floorOf.get(room);
    const above = floorOf.get(other);
    return floor !== undefined && above !== undefined && above > floor
      ? [`${from}: imports ${to}, but the map puts ${other} above ${room}`]
      : [];
  });
}

/** Circles among the files and folders of one folder, as sentences. */
export function circles(files: readonly Source[]): string[] {
  const next = new Map<string, Set<string>>();
  for (const { room, other } of pairs(files)) next.set(room, (next.get(room) ?? new Set()).add(other));
  const found: string[] = [];
  const done = new Set<string>();
  const follow = (room: string, way: readonly string[]): void => {
    const start = way.indexOf(room);
    if (start >= 0) found.push(`a circle of imports: ${[...way.slice(start), room].join(" → ")}`);
    if (start >= 0 || done.has(room)) return;
    for (const other of next.get(room) ?? []) follow(other, [...way, room]);
    done.add(room);
  };
  for (const room of next.keys()) follow(room, []);
  return found;
}

/** Each import as a step between two entries of the deepest folder that holds both files. */
function pairs(files: readonly Source[]): { from: string; to: string; room: string; other: string }[] {
  return files.flatMap(({ path, source }) =>
    importsOf(source)
      .filter(({ target }) => target.startsWith("."))
      .map(({ target }) => posix.join(posix.dirname(path), target))
      .flatMap((to) => {
        const here = path.split("/");
        const there = to.split("/");
        const depth = here.findIndex((part, index) => part !== there[index]);
        if (depth < 1) return [];
        return [
          { from: path, to, room: here.slice(0, depth + 1).join("/"), other: there.slice(0, depth + 1).join("/") },
        ];
      }),
  );
}

function ancestors(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

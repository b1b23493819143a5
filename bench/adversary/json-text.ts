/** JSON as a tree that can hold what no object can: names twice, names written with escapes, numbers of any spelling. */
export type Raw = { kind: "raw"; text: string };
export type Member = { key: string; value: Tree };
export type ObjectTree = { kind: "object"; members: Member[] };
export type ArrayTree = { kind: "array"; items: Tree[] };
export type Tree = Raw | ObjectTree | ArrayTree;

export function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return { kind: "array", items: value.map(treeOf) };
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, item]) => memberOf(name, item));
    return { kind: "object", members };
  }
  return { kind: "raw", text: JSON.stringify(value ?? null) };
}

export function objectOf(fields: Record<string, unknown>): ObjectTree {
  return { kind: "object", members: Object.entries(fields).map(([name, item]) => memberOf(name, item)) };
}

/** A member whose name is written plainly. */
export function memberOf(name: string, value: unknown): Member {
  return { key: JSON.stringify(name), value: treeOf(value) };
}

export const raw = (text: string): Raw => ({ kind: "raw", text });

export function write(tree: Tree): string {
  if (tree.kind === "raw") return tree.text;
  if (tree.kind === "array") return `[${tree.items.map(write).join(",")}]`;
  return `{${tree.members.map(({ key, value }) => `${key}:${write(value)}`).join(",")}}`;
}

/** The name that a member's key spells. */
export function nameOf({ key }: Member): string {
  return String(JSON.parse(key));
}

export function find(object: ObjectTree, name: string): Member | undefined {
  return object.members.find((member) => nameOf(member) === name);
}

/** Every object of a tree, itself first. */
export function objectsIn(tree: Tree): ObjectTree[] {
  if (tree.kind === "raw") return [];
  if (tree.kind === "array") return tree.items.flatMap(objectsIn);
  return [tree, ...tree.members.flatMap(({ value }) => objectsIn(value))];
}

/** Every array of a tree. */
export function arraysIn(tree: Tree): ArrayTree[] {
  if (tree.kind === "raw") return [];
  if (tree.kind === "array") return [tree, ...tree.items.flatMap(arraysIn)];
  return tree.members.flatMap(({ value }) => arraysIn(value));
}

/**
 * What a test file replaces of the gateway and of the runtime, it must put back: the files of a runtime share both, and tests of another
 * file would fail for what this one has left, depending on which files come after it.
 */
import { LaneDuty } from "../../durable-objects/lane/duty.ts";
import { LaneLives } from "../../durable-objects/run/memory/lane-lives.ts";
import { RunStore } from "../../durable-objects/run/store/store.ts";
import { Children } from "../../durable-objects/run/memory/children.ts";
import { isolatePaces, Paces } from "../../src/executors/paces.ts";

/** What tests replace of the global object. */
const GLOBALS = ["fetch", "setTimeout", "setInterval"];

/** Remembers the methods of a Worker's classes as they are. Returns a function that names those that are others by then. */
export function watchReplaced(worker: Record<string, unknown>): () => string[] {
  const before = methodsOf(worker);
  return () => {
    const replaced = [...methodsOf(worker)].flatMap(([name, method]) => (before.get(name) === method ? [] : [name]));
    return isolatePaces.reachOf === Paces.prototype.reachOf ? replaced : [...replaced, "isolatePaces.reachOf"];
  };
}

function methodsOf(worker: Record<string, unknown>): Map<string, unknown> {
  const methods = new Map<string, unknown>();
  const note = (name: string, owner: object, keys: readonly string[]): void => {
    for (const key of keys) methods.set(`${name}.${key}`, Object.getOwnPropertyDescriptor(owner, key)?.value);
  };
  for (const [name, exported] of Object.entries({ ...worker, LaneDuty, LaneLives, RunStore, Children })) {
    const prototype: unknown = typeof exported === "function" ? exported.prototype : null;
    if (typeof prototype === "object" && prototype !== null)
      note(name, prototype, Object.getOwnPropertyNames(prototype));
  }
  // As the gateway reads them: the runtime has some on a prototype, and a test that puts one back makes it an own property.
  for (const name of GLOBALS) methods.set(`globalThis.${name}`, Reflect.get(globalThis, name));
  note("Date", Date, ["now"]);
  return methods;
}

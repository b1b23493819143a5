/** The functions of a bundle say that they run, each once, whatever their form is, and where they are written. */
import { build } from "esbuild";
import { expect, it } from "vitest";
import { z } from "zod";
import { roomsOf, watched } from "../../../bench/ways/coverage.ts";

const SOURCE = `
export class Base { constructor(x) { this.x = x; } }
export class Derived extends Base {
  #secret = () => ({ a: this.x });
  constructor() { super(2); }
  get secret() { return this.#secret().a; }
  static make = () => new Derived();
}
export const curried = (a) => (b) => (a, b);
export function unused() { return 0; }
export async function* numbers() { yield* [1, 2].map((n) => n * 2); }
`;

const module = z.object({
  Derived: z.custom<{ make: () => { secret: number } }>(),
  curried: z.custom<(a: number) => (b: number) => number>(),
  numbers: z.custom<() => AsyncGenerator<number>>(),
});

/** The source's bundle, loaded: what it exports, and the lines of `room` whose functions ran since the last look. */
async function loaded(source: string, others: Record<string, string> = {}) {
  const built = await build({
    stdin: { contents: source, sourcefile: "src/room/subject.ts", loader: "ts" },
    plugins: [
      {
        name: "other rooms",
        setup: ({ onResolve, onLoad }) => {
          onResolve({ filter: /^src\// }, ({ path }) => ({ path, namespace: "source" }));
          onLoad({ filter: /./, namespace: "source" }, ({ path }) => ({ contents: others[path] ?? "", loader: "ts" }));
        },
      },
    ],
    bundle: true,
    write: false,
    outdir: "out",
    format: "esm",
    sourcemap: "external",
  });
  const textOf = (end: string) => built.outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  const { bundle, places } = watched({ code: textOf(".js"), map: textOf(".js.map") });
  const exported: unknown = await import(`data:text/javascript,${encodeURIComponent(bundle.code)}`);
  const take = z.object({ takeFunctionsRun: z.custom<() => string>() }).parse(globalThis).takeFunctionsRun;
  take();
  const run = (): Record<string, number[]> =>
    Object.fromEntries(
      [...roomsOf(take(), places)].map(([room, labels]) => [
        room,
        [...new Set(labels.map((label) => Number(label.split(":")[1])))].toSorted((a, b) => a - b),
      ]),
    );
  return { exported, run };
}

it("counts each function that runs by its place in the source, and changes nothing else", async () => {
  const { exported, run } = await loaded(SOURCE);
  const { Derived, curried, numbers } = module.parse(exported);

  expect(Derived.make().secret).toBe(2);
  expect(curried(1)(2)).toBe(2);
  const counted: number[] = [];
  for await (const number of numbers()) counted.push(number);
  expect(counted).toEqual([2, 4]);

  expect(run()).toEqual({ "src/room": [2, 4, 5, 6, 7, 9, 11] });
  expect(run()).toEqual({});
});

it("counts a function again that goes on after it has waited, whatever the others do", async () => {
  const source = `
export async function waits(first, second) {
  await first;
  return await second + 1;
}
export const awaits = async (promise) => await promise;
export function* yields() { const got = yield; return got; }
export async function loops(items) {
  const taken = [];
  for await (const item of items) taken.push(item);
  return taken;
}
`;
  const { exported, run } = await loaded(source);
  const { waits, awaits, yields, loops } = z
    .object({
      waits: z.custom<(first: Promise<void>, second: Promise<number>) => Promise<number>>(),
      awaits: z.custom<(promise: Promise<number>) => Promise<number>>(),
      yields: z.custom<() => Generator<undefined, number, number>>(),
      loops: z.custom<(items: AsyncIterable<number>) => Promise<number[]>>(),
    })
    .parse(exported);
  const [first, second, third] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<number>(),
    Promise.withResolvers<number>(),
  ];
  const waiting = waits(first.promise, second.promise);
  const awaiting = awaits(third.promise);
  const yielding = yields();
  yielding.next();
  const items = new TransformStream<number, number>();
  const looping = loops(items.readable);
  expect(run()).toEqual({ "src/room": [2, 6, 7, 8] });

  first.resolve();
  await first.promise;
  expect(run()).toEqual({ "src/room": [2] });
  second.resolve(1);
  expect(await waiting).toBe(2);
  expect(run()).toEqual({ "src/room": [2] });
  third.resolve(3);
  expect(await awaiting).toBe(3);
  expect(run()).toEqual({ "src/room": [6] });
  expect(yielding.next(4)).toEqual({ done: true, value: 4 });
  expect(run()).toEqual({ "src/room": [7] });
  const writer = items.writable.getWriter();
  await writer.write(5);
  await writer.close();
  expect(await looping).toEqual([5]);
  expect(run()).toEqual({ "src/room": [8] });
});

it("counts an effect where it is written, and an object whose class has no constructor, but neither types nor tables", async () => {
  const source = `
import { TABLE } from "src/table/table.ts";
import { write } from "src/effects/effects.ts";
import { Kept } from "src/memory/kept.ts";
import type { Shape } from "src/types/types.ts";
const decide = (effect) => effect(TABLE.one);
export const decided = () => [decide(write), new Kept().size];
`;
  const { exported, run } = await loaded(source, {
    "src/table/table.ts": "export const TABLE = { one: 1 };",
    "src/effects/effects.ts": "export const write = (value) => value + 1;",
    "src/memory/kept.ts": "export class Kept { size = 0; }",
    "src/types/types.ts": "export type Shape = number;",
  });
  const { decided } = z.object({ decided: z.custom<() => number[]>() }).parse(exported);
  expect(decided()).toEqual([2, 0]);
  expect(run()).toEqual({ "src/room": [6, 7], "src/effects": [1], "src/memory": [1] });
});

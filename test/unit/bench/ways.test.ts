/** The functions of a bundle say that they run, each once, whatever their form is. */
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

it("counts each function that runs by its place in the source, and changes nothing else", async () => {
  const built = await build({
    stdin: { contents: SOURCE, sourcefile: "src/room/subject.ts" },
    bundle: true,
    write: false,
    outdir: "out",
    format: "esm",
    sourcemap: "external",
  });
  const textOf = (end: string) => built.outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  const { bundle, places } = watched({ code: textOf(".js"), map: textOf(".js.map") });
  const loaded: unknown = await import(`data:text/javascript,${encodeURIComponent(bundle.code)}`);
  const { Derived, curried, numbers } = module.parse(loaded);
  const take = z.object({ takeFunctionsRun: z.custom<() => string>() }).parse(globalThis).takeFunctionsRun;
  take();

  expect(Derived.make().secret).toBe(2);
  expect(curried(1)(2)).toBe(2);
  const counted: number[] = [];
  for await (const number of numbers()) counted.push(number);
  expect(counted).toEqual([2, 4]);

  const rooms = roomsOf(take(), places);
  const linesRun = [...new Set((rooms.get("src/room") ?? []).map((label) => label.split(":")[1]))];
  expect([...rooms.keys()]).toEqual(["src/room"]);
  expect(linesRun.toSorted((a, b) => Number(a) - Number(b))).toEqual(["2", "4", "5", "6", "7", "9", "11"]);
  expect(roomsOf(take(), places).size).toBe(0);
});

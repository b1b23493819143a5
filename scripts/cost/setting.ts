/** The options of `npm run cost`. */
import { parseArgs } from "node:util";

export type CostSetting = {
  isMeasured: boolean;
  calls: number;
  seconds: number;
  /** Undefined = all counted widths. */
  width: number | undefined;
};

/** Longest call, seconds: an attempt may take an hour. */
const SECONDS_MAX = 3_600;

/** Reads `--calls 1e6 --seconds 20 --width 64 --measure`; a sentence for what is wrong. */
export function costSetting(args: readonly string[]): CostSetting | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        measure: { type: "boolean", default: false },
        calls: { type: "string", default: "1e6" },
        seconds: { type: "string", default: "20" },
        width: { type: "string" },
      },
    });
    const [calls, seconds, width] = [Number(values.calls), Number(values.seconds), Number(values.width ?? 64)];
    if (!(calls >= 1 && calls < Infinity)) return `--calls: expected a number from 1, for example 1e6`;
    if (!(seconds > 0 && seconds <= SECONDS_MAX)) return `--seconds: expected a number of at most ${SECONDS_MAX}`;
    if (!(Number.isInteger(width) && width >= 1)) return "--width: expected a whole number from 1";
    return { isMeasured: values.measure, calls, seconds, width: values.width === undefined ? undefined : width };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

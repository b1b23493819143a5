/** Waiting for conditions. */

const LOOK_EVERY_MS = 5;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves as soon as `holds`. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(LOOK_EVERY_MS);
}

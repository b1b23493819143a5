/** Waiting for conditions. */

const LOOK_EVERY_MS = 5;

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolves true as soon as `holds`, false after `msMax`. */
export async function until(holds: () => boolean, msMax: number): Promise<boolean> {
  const startedMs = performance.now();
  while (!holds()) {
    if (performance.now() - startedMs > msMax) return false;
    await sleep(LOOK_EVERY_MS);
  }
  return true;
}

/** When the page is drawn: at most so often, in the browser's own frames, and not at all while nobody sees it. */

/** However fast the log grows, so much time lies between two drawings, ms: a reader sees no more of numbers that change. */
const FRAME_MS = 100;
/** And at most this share of the time goes into drawing: a long log arrives the faster. */
const DRAW_SHARE = 0.2;

/** `frame` runs a step with the browser's next frame; `soon` at the end of the task, when components have drawn. */
export type Pace = {
  now: () => number;
  after: (step: () => void, delayMs: number) => void;
  frame: (step: () => void) => void;
  soon: (step: () => void) => void;
};

/** Returns a function that requests a drawing. Several requests before it are one; the first after a pause is met at once. */
export function paced(draw: () => void, { now, after, frame, soon }: Pace): () => void {
  let isDue = false;
  let nextMs = -Infinity;
  const drawFrame = (): void => {
    isDue = false;
    const beganMs = now();
    draw();
    soon(() => void (nextMs = beganMs + Math.max(FRAME_MS, (now() - beganMs) / DRAW_SHARE)));
  };
  return () => {
    if (isDue) return;
    isDue = true;
    const delayMs = nextMs - now();
    if (delayMs <= 0) frame(drawFrame);
    else after(() => frame(drawFrame), delayMs);
  };
}

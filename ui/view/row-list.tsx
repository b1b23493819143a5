/**
 * The lines of the timeline. The canvas covers what is on the screen and some lines above and below, and moves with the list:
 * the browser scrolls it without this page, which draws again only near the canvas's edge. It is placed by a transform, so that
 * nothing is laid out.
 */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isSameRow, type Row, type Rows } from "../model/rows.ts";
import { drawRows, ROW_PX, type Drawing } from "./timeline-canvas.ts";

/**
 * Lines beyond the screen that are drawn: a fast wheel turns past them in five frames. More would be drawn less often, but a
 * browser without a graphics card copies the whole canvas with each frame.
 */
const SPARE_PX = 20 * ROW_PX;
/** The share of them that lies ahead, where a reader scrolls to. */
const AHEAD_SHARE = 0.75;
/** So near to its edge, the canvas is moved: what a fast wheel turns in a frame. */
const EDGE_PX = 3 * ROW_PX;
/** A list that has moved within this time will move on: the lines beyond the screen are kept fresh, ms. */
const SCROLLING_MS = 500;

/** Where a row was pointed at, px from the top and the left of the list; and the size of the list. */
export type Place = { x: number; y: number; width: number; height: number };

type Props = Drawing & {
  rows: Rows;
  chosen: Row | null;
  choose: (row: Row | null, place: Place) => void;
};

export function RowList({ rows, chosen, choose, ...drawing }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<Picture | null>(null);
  const current = (): Picture | null => {
    if (list.current === null || canvas.current === null) return null;
    picture.current ??= new Picture(list.current, canvas.current);
    return picture.current;
  };
  useLayoutEffect(() => current()?.show(rows, drawing));
  useEffect(() => {
    const resized = new ResizeObserver(() => current()?.redraw());
    if (list.current !== null) resized.observe(list.current);
    return () => resized.disconnect();
  }, []);
  const at = chosen === null ? null : rows.indexOf(chosen);
  const rowAt = (event: MouseEvent): Row | null => {
    const box = list.current;
    if (box === null) return null;
    return rows.at(Math.floor((event.clientY - box.getBoundingClientRect().top + box.scrollTop) / ROW_PX));
  };
  const placeOf = (x: number, y: number): Place => {
    const { clientWidth: width = 0, clientHeight: height = 0 } = list.current ?? {};
    return { x, y, width, height };
  };
  const point = (event: MouseEvent, row: Row | null): void => {
    const { left = 0, top = 0 } = list.current?.getBoundingClientRect() ?? {};
    if (row === null ? chosen !== null : !isSameRow(row, chosen))
      choose(row, placeOf(event.clientX - left, event.clientY - top));
  };
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const box = list.current;
    if (by === undefined || box === null) return;
    event.preventDefault();
    const from = at ?? Math.ceil(box.scrollTop / ROW_PX) - 1;
    const to = Math.max(0, Math.min(rows.length - 1, from + by));
    const [top, bottom] = [to * ROW_PX, (to + 1) * ROW_PX];
    if (top < box.scrollTop) box.scrollTop = top;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    choose(rows.at(to), placeOf(box.clientWidth / 3, bottom - box.scrollTop));
  };
  return (
    <div
      class="rows"
      ref={list}
      tabIndex={0}
      role="group"
      aria-label={`${rows.length} rows; arrow keys choose one. Calls that failed are also listed under Failures`}
      onScroll={() => current()?.scrolled()}
      onKeyDown={move}
      onMouseMove={(event) => point(event, rowAt(event))}
      onMouseLeave={(event) => point(event, null)}
      onClick={(event) => point(event, rowAt(event))}
    >
      {at !== null && <div class="chosen" style={{ transform: `translateY(${at * ROW_PX}px)` }} />}
      <canvas ref={canvas} aria-hidden="true" />
      <div style={{ height: `${rows.length * ROW_PX}px` }} />
    </div>
  );
}

/** What is on the canvas, and where the canvas is. */
class Picture {
  readonly #list: HTMLElement;
  readonly #canvas: HTMLCanvasElement;
  #shown: { rows: Rows; drawing: Drawing } | null = null;
  #topPx = 0;
  #lastTopPx = 0;
  #scrolledAtMs = -Infinity;
  /** Whether the lines beyond the screen are as they were, not as they are. */
  #isStale = true;

  constructor(list: HTMLElement, canvas: HTMLCanvasElement) {
    this.#list = list;
    this.#canvas = canvas;
  }

  /** Shows lines that may have changed: of a list that rests, those on the screen. */
  show(rows: Rows, drawing: Drawing): void {
    this.#shown = { rows, drawing };
    const { scrollTop, clientHeight } = this.#list;
    const isMoving = performance.now() - this.#scrolledAtMs < SCROLLING_MS;
    if (isMoving || this.#place(scrollTop, clientHeight)) return this.#draw(null);
    this.#isStale = true;
    this.#draw({ fromPx: scrollTop, toPx: scrollTop + clientHeight });
  }

  scrolled(): void {
    this.#scrolledAtMs = performance.now();
    const { scrollTop, clientHeight } = this.#list;
    if (this.#place(scrollTop, clientHeight) || this.#isStale) this.#draw(null);
    this.#lastTopPx = scrollTop;
  }

  redraw(): void {
    this.#place(this.#list.scrollTop, this.#list.clientHeight);
    this.#draw(null);
  }

  /** Moves the canvas if the screen is near its edge or beyond, or its size has changed. Whether it has moved. */
  #place(viewTopPx: number, viewPx: number): boolean {
    const listPx = (this.#shown?.rows.length ?? 0) * ROW_PX;
    const heightPx = Math.min(listPx, viewPx + SPARE_PX);
    const isSized = this.#canvas.style.height === `${heightPx}px`;
    const [topPx, endPx] = [this.#topPx, this.#topPx + heightPx];
    const isAbove = viewTopPx < topPx + (topPx > 0 ? EDGE_PX : 0);
    const isBelow = viewTopPx + viewPx > endPx - (endPx < listPx ? EDGE_PX : 0);
    if (isSized && !isAbove && !isBelow) return false;
    const aheadShare = viewTopPx >= this.#lastTopPx ? AHEAD_SHARE : 1 - AHEAD_SHARE;
    const wantedPx = Math.floor((viewTopPx - (1 - aheadShare) * SPARE_PX) / ROW_PX) * ROW_PX;
    this.#topPx = Math.max(0, Math.min(listPx - heightPx, wantedPx));
    this.#canvas.style.height = `${heightPx}px`;
    this.#canvas.style.transform = `translateY(${this.#topPx}px)`;
    return true;
  }

  #draw(only: { fromPx: number; toPx: number } | null): void {
    if (this.#shown === null) return;
    const { rows, drawing } = this.#shown;
    drawRows(this.#canvas, rows, { topPx: this.#topPx, only }, drawing);
    if (only === null) this.#isStale = false;
  }
}

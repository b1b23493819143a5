import { describe, expect, it } from "vitest";
import { paced, type Pace } from "../../../ui/model/paced.ts";

/** A browser whose frames come when the test says so. */
class Browser implements Pace {
  ms = 0;
  drawnMs: number[] = [];
  drawCostMs = 0;
  #frames: (() => void)[] = [];
  #soon: (() => void)[] = [];
  #timers: { atMs: number; step: () => void }[] = [];

  now = (): number => this.ms;
  after = (step: () => void, delayMs: number): void => void this.#timers.push({ atMs: this.ms + delayMs, step });
  frame = (step: () => void): void => void this.#frames.push(step);
  soon = (step: () => void): void => void this.#soon.push(step);

  draw = (): void => {
    this.drawnMs.push(this.ms);
    this.ms += this.drawCostMs;
  };

  /** Time passes, and then a frame comes. */
  pass(ms: number): void {
    this.ms += ms;
    const due = this.#timers.filter(({ atMs }) => atMs <= this.ms);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.ms);
    for (const { step } of due) step();
    for (const step of this.#frames.splice(0)) step();
    for (const step of this.#soon.splice(0)) step();
  }
}

describe("the pace of the page's drawings", () => {
  it("draws the first change after a pause with the next frame, and the next ones not sooner than 100 ms later", () => {
    const browser = new Browser();
    const request = paced(browser.draw, browser);
    for (let frame = 0; frame < 30; frame++) {
      request();
      request();
      browser.pass(10);
    }
    expect(browser.drawnMs).toEqual([10, 110, 210]);
    // One more was requested in the meantime; the one after the pause waits for nothing.
    browser.pass(1_000);
    browser.pass(1_000);
    request();
    browser.pass(10);
    expect(browser.drawnMs).toEqual([10, 110, 210, 1_300, 2_310]);
  });

  it("draws the last change although nothing follows it", () => {
    const browser = new Browser();
    const request = paced(browser.draw, browser);
    request();
    browser.pass(10);
    request();
    browser.pass(10);
    expect(browser.drawnMs).toEqual([10]);
    browser.pass(100);
    expect(browser.drawnMs).toEqual([10, 120]);
  });

  it("leaves four fifths of the time to the rest, where drawing takes long", () => {
    const browser = new Browser();
    browser.drawCostMs = 100;
    const request = paced(browser.draw, browser);
    request();
    browser.pass(10);
    request();
    for (let frame = 0; frame < 39; frame++) browser.pass(10);
    expect(browser.drawnMs).toEqual([10]);
    browser.pass(10);
    expect(browser.drawnMs).toEqual([10, 510]);
  });
});

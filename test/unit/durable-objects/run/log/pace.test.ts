/** The pace of a log's pages, with others who are served when the test says so. */
import { expect, it } from "vitest";
import { Pace } from "../../../../../durable-objects/run/log/pace.ts";
import { LOG_PAGE_CHARS_MAX } from "../../../../../src/limits.ts";
import type { LogPage } from "../../../../../src/objects/methods/log.ts";

/** Asks for so many pages of so many characters; `made` has their numbers in the order in which they are made. */
function asked(pages: number, chars: number) {
  const made: number[] = [];
  const served: PromiseWithResolvers<void>[] = [];
  const pace = new Pace(() => {
    const others = Promise.withResolvers<void>();
    served.push(others);
    return others.promise;
  });
  for (let at = 0; at < pages; at += 1) {
    void pace.page(() => {
      made.push(at);
      return pageOf(chars);
    });
  }
  return { made, served };
}

function pageOf(chars: number): LogPage {
  return {
    rows: [{ last: 1, lines: "x".repeat(chars) }],
    run: { id: "run_1", parentId: null, depth: 0 },
    final: false,
  };
}

function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

it("lets one large page go, and the next one when others were served, in the order of those who ask", async () => {
  const { made, served } = asked(4, LOG_PAGE_CHARS_MAX);
  for (const expected of [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]) {
    await settled();
    expect(made).toEqual(expected);
    served.at(-1)?.resolve();
  }
  expect(served).toHaveLength(3);
});

it("lets small pages go at once until they are worth a large one", async () => {
  const { made, served } = asked(10, LOG_PAGE_CHARS_MAX / 4);
  await settled();
  expect(made).toHaveLength(4);
  served.at(-1)?.resolve();
  await settled();
  expect(made).toHaveLength(8);
});

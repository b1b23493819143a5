/** Says at the end of a run of tests what it left to other commands: a reader of a green run knows what was not tried. */
import type { Reporter, TestModule } from "vitest/node";

/** Projects that `npm run test:outside` runs: the gateway as others see it. */
const OUTSIDE = ["stubs", "clients", "clients-openai-6", "docs", "examples", "page"];
/** Projects that only `npm run test:slow` runs. */
const SLOW = ["simulation", "fuzz"];

export class LeftToOthers implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const projects = new Set(modules.map(({ project }) => project.name));
    // Who names a file or a project knows what is left out.
    if (!projects.has("unit") || !projects.has("contract")) return;
    const slow = modules.flatMap((module) => [...module.children.allTests()]).filter(isSlowAndLeftOut).length;
    const left = [
      ...(slow > 0 ? [`${slow} slow tests`] : []),
      ...SLOW.filter((name) => !projects.has(name)),
      ...OUTSIDE.filter((name) => !projects.has(name)),
    ];
    if (left.length === 0) return;
    console.log(` Left out: ${left.join(", ")}. npm run test:slow, test:outside and test:all run them.\n`);
  }
}

function isSlowAndLeftOut(test: { tags: readonly string[]; result(): { state: string } }): boolean {
  return test.tags.includes("slow") && test.result().state === "skipped";
}

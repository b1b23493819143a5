/** The order of the test files: vitest's, but projects whose files take longest come first, so that the last process does not end alone. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Projects whose files take about a second or less: they fill what is left of the time. */
const SHORT = ["unit"];

export class ShortFilesLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isShort = ({ project }: TestSpecification) => SHORT.includes(project.name);
    const sorted = await super.sort(files);
    return [...sorted.filter((file) => !isShort(file)), ...sorted.filter(isShort)];
  }
}

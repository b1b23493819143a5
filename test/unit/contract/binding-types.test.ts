/** The types of the binding in the npm package, against the schemas of the routes: `tsc` fails where they differ. */
import { describe, expectTypeOf, it } from "vitest";
import type * as z from "zod";
import type {
  Batch,
  BatchAnswer,
  Dag,
  DagAnswer,
  FanoutRun,
  Query,
  QueryAnswer,
  RunDocument,
} from "../../../packages/javascript/binding.d.mts";
import type { Budget } from "../../../stubs/typescript/fanout.mjs";
import type { batchBody, batchReply } from "../../../src/contract/batch.ts";
import type { dagBody } from "../../../src/contract/graph/dag.ts";
import type { graphReply } from "../../../src/contract/graph/replies.ts";
import type { queryBody, queryReply } from "../../../src/contract/query.ts";
import type { budgetDocument, runDocument } from "../../../src/contract/runs.ts";
import type { FanoutRun as Entrypoint } from "../../../src/entrypoints/run.ts";

/** The names of the members of all alternatives of a type. */
type NamesOf<T> = T extends unknown ? keyof T : never;
type SentIn<Schema extends z.ZodType> = keyof z.input<Schema>;

describe("the types of FanoutRun in the npm package", () => {
  it("name fields that the routes take, and no others", () => {
    expectTypeOf<Exclude<NamesOf<Query>, SentIn<ReturnType<typeof queryBody>>>>().toEqualTypeOf<never>();
    expectTypeOf<Exclude<NamesOf<Batch>, SentIn<ReturnType<typeof batchBody>>>>().toEqualTypeOf<never>();
    expectTypeOf<Exclude<NamesOf<Dag>, SentIn<ReturnType<typeof dagBody>>>>().toEqualTypeOf<never>();
  });

  it("describe what the routes return", () => {
    expectTypeOf<z.infer<ReturnType<typeof queryReply>>>().toExtend<QueryAnswer>();
    expectTypeOf<Omit<z.infer<ReturnType<typeof batchReply>>, "results" | "responses">>().toExtend<
      Omit<BatchAnswer, "results">
    >();
    expectTypeOf<z.infer<ReturnType<typeof graphReply>>>().toExtend<DagAnswer>();
    expectTypeOf<z.infer<ReturnType<typeof budgetDocument>>>().toExtend<Budget>();
    expectTypeOf<z.infer<ReturnType<typeof runDocument>>>().toExtend<RunDocument>();
  });

  it("have methods that the class has", () => {
    expectTypeOf<Exclude<keyof FanoutRun, keyof Entrypoint>>().toEqualTypeOf<never>();
  });
});

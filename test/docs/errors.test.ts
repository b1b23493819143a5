/** That docs/errors.md tells of every error what src/errors.ts makes of it. */
import { expect, it } from "vitest";
import { toWire } from "../../src/errors.ts";
import { SAMPLES } from "../support/reasons.ts";
import { CODE_RULES, STATUS_RULES } from "../../src/providers/failure-table.ts";
import { codesIn, rowsOf } from "./tables.ts";

it("documents the status of every code, whether it is retryable, and its facts", async () => {
  const documented = (await rowsOf("docs/errors.md", "code")).map(([code, status, retryable, facts]) => ({
    code: codesIn(code).join(),
    status: Number(status),
    retryable,
    facts: codesIn(facts).toSorted(),
  }));
  const sixOfAll = ["message", "type", "code", "param", "retryable"];
  const made = Object.values(SAMPLES).map((reason) => {
    const { status, error } = toWire(reason);
    const retryable = error.code === "upstream_error" ? "depends" : error.retryable ? "yes" : "no";
    const facts = Object.keys(error).filter((name) => !sixOfAll.includes(name));
    return { code: error.code, status, retryable, facts: facts.toSorted() };
  });
  const sorted = (rows: typeof made) =>
    rows.toSorted((a, b) => (`${a.code} ${a.status}` < `${b.code} ${b.status}` ? -1 : 1));
  expect(sorted(documented.map((row) => ({ ...row, retryable: row.retryable ?? "" })))).toEqual(sorted(made));
});

it("documents what each status of an upstream costs, and whether it is retried", async () => {
  const documented = await rowsOf("docs/errors.md", "upstream's status");
  const made = STATUS_RULES.map(({ statuses, class: failureClass, retryable, billable }) => {
    const free = billable ? "nothing, or as `errors_cost` sets" : "nothing";
    const costs = failureClass === "unknown" ? "its reservation" : free;
    return [statuses.map((status) => `\`${status}\``).join(" "), costs, retryable ? "yes" : "no"];
  });
  expect(documented).toEqual(made);
});

it("documents what each code of an upstream costs", async () => {
  const documented = (await rowsOf("docs/errors.md", "upstream's code")).map(([codes, costs]) => [
    codesIn(codes),
    costs,
  ]);
  expect(documented).toEqual(
    CODE_RULES.map(({ codes, billed }) => [codes, billed ? "its reservation" : "as its status"]),
  );
});

/**
 * What single calls have recorded and replayed, as rows: one for all calls of a turn. A call of a group has a row of its own,
 * which has the key of its answer; a single call has none.
 *
 *   marks    which answer each call made or had, as one JSON array: read when the object starts
 *   answers  the answers that were made, one JSON text per line: read when one of them is replayed
 */
import type { Recorded } from "../../../src/objects/methods/replay.ts";
import type { Rows } from "./sql.ts";

/** `of`: the answer that the call had; absent = it made one. `line`: where the answer is in its row; absent = it is in another. */
export type TapeMark = { key: string; epoch: string; of?: string; line?: number };

export class TapeRows {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  put(id: number, { marks, answers }: { marks: readonly TapeMark[]; answers: readonly string[] }): void {
    const query = "INSERT INTO tape (id, marks, answers) VALUES (?, ?, ?)";
    this.#rows.write("tape", query, id, JSON.stringify(marks), answers.join("\n"));
  }

  /** All marks, oldest first. */
  *all(): Generator<{ id: number; marks: TapeMark[] }> {
    for (const row of this.#rows.read<{ id: number; marks: string }>("tape", "SELECT id, marks FROM tape ORDER BY id"))
      yield { id: row.id, marks: JSON.parse(row.marks) as TapeMark[] };
  }

  /** The number of the last row; 0 = there is none. */
  lastId(): number {
    return this.#rows.first<{ last: number | null }>("tape", "SELECT max(id) AS last FROM tape")?.last ?? 0;
  }

  /** An answer by its place; null if it is not there. */
  answer(id: number, line: number): Recorded | null {
    const row = this.#rows.first<{ answers: string }>("tape", "SELECT answers FROM tape WHERE id = ?", id);
    const text = row?.answers.split("\n")[line];
    return text === undefined ? null : (JSON.parse(text) as Recorded);
  }
}

/**
 * What a run stores, and what it may: one bound for a root run with all runs below it. The root has the account. It counts its own bytes
 * and those that it has allowed each descendant; a descendant asks for more before it stores more than it was allowed. Every
 * child counts a floor at its parent from its opening on, and needs to ask for nothing below that.
 */
import { RUN_FLOOR_BYTES, RUN_SPACE_STEP_BYTES, RUN_STORED_BYTES_MAX } from "../../../src/limits.ts";
import type { Meta } from "./meta.ts";
import type { Rows } from "./sql.ts";

/** The account of a root run: what each of its descendants may store beyond the floor. */
export class TreeAccount {
  readonly #allowed = new Map<string, number>();
  #sum = 0;

  constructor(allowed: Iterable<{ id: string; bytes: number }> = []) {
    for (const { id, bytes } of allowed) this.set(id, bytes);
  }

  /** What all descendants together may store beyond their floors. */
  get sum(): number {
    return this.#sum;
  }

  of(id: string): number {
    return this.#allowed.get(id) ?? 0;
  }

  set(id: string, bytes: number): void {
    this.#sum += bytes - this.of(id);
    if (bytes === 0) this.#allowed.delete(id);
    else this.#allowed.set(id, bytes);
  }

  /**
   * What a descendant may store from now on: a step more than it needs, exactly what it needs, or what it may already.
   * @param free What the bound leaves beside the root's own bytes and what is allowed.
   */
  allow(id: string, neededBytes: number, free: number): number {
    const before = this.of(id);
    const stepped = Math.ceil(neededBytes / RUN_SPACE_STEP_BYTES) * RUN_SPACE_STEP_BYTES;
    const fits = [stepped, neededBytes].find((bytes) => bytes - before <= free);
    // What was allowed is never taken back by a need that is smaller: another request may be about to use it.
    const bytes = Math.max(before, fits ?? before);
    this.set(id, bytes);
    return bytes;
  }
}

/** What is in rows of other objects and in R2, and what a run may store. */
export class RunSpace {
  readonly #rows: Rows;
  readonly #meta: Meta;
  /** Bytes in R2 of groups that are not open yet, by their keys. */
  readonly #staged = new Map<string, number>();
  #stored: Stored | null = null;
  /** Of a descendant: what its root allows beyond the floor. In memory only: the root knows it. */
  #allowedBytes = 0;

  constructor(rows: Rows, meta: Meta) {
    this.#rows = rows;
    this.#meta = meta;
  }

  /** What is left to store; below zero, more is stored: answers always are. */
  get freeBytes(): number {
    const { tree } = this.#known;
    const bound = tree === null ? RUN_FLOOR_BYTES + this.#allowedBytes : RUN_STORED_BYTES_MAX - tree.sum;
    return bound - this.#ownBytes;
  }

  /** Whether a root has no room left. A descendant can always ask. */
  get isFull(): boolean {
    return this.#known.tree !== null && this.freeBytes <= 0;
  }

  /** What the run must be allowed beyond the floor to store so much more; 0 = it may, or is the root, which nobody allows anything. */
  neededFor(moreBytes: number): number {
    if (this.#known.tree !== null || moreBytes <= this.freeBytes) return 0;
    return Math.max(0, this.#ownBytes + moreBytes - RUN_FLOOR_BYTES);
  }

  /** Of a descendant: what its root is known to allow beyond the floor. */
  get allowance(): number {
    return this.#allowedBytes;
  }

  allowed(bytes: number): void {
    this.#allowedBytes = bytes;
  }

  /**
   * Of a root: allows a descendant as much as it needs, if there is room. What it may store beyond its floor. `isStored`: it has stored that
   * already, as a batch stores its answers: it counts, and leaves less, or nothing, to others.
   */
  allow(id: string, neededBytes: number, isStored = false): number {
    const { tree } = this.#known;
    if (tree === null) return 0;
    const before = tree.of(id);
    const allowed = neededBytes === 0 ? 0 : tree.allow(id, neededBytes, this.freeBytes);
    const bytes = isStored ? Math.max(allowed, neededBytes) : allowed;
    if (bytes !== allowed || bytes === 0) tree.set(id, bytes);
    if (bytes === before) return bytes;
    if (bytes === 0) this.#rows.remove("space", "DELETE FROM space WHERE id = ?", id);
    else this.#rows.write("space", "INSERT OR REPLACE INTO space (id, bytes) VALUES (?, ?)", id, bytes);
    return bytes;
  }

  /** Bytes of files, uploads, contexts and batches, as their object counts them. */
  get filesBytes(): number {
    return this.#known.files;
  }

  setFilesBytes(bytes: number): void {
    this.#known.files = bytes;
    this.#meta.set("filesBytes", bytes);
  }

  /** A group that is being uploaded has so many bytes in R2 by now. */
  staged(openKey: string, bytes: number): void {
    this.#staged.set(openKey, bytes);
  }

  dropped(openKey: string): void {
    this.#staged.delete(openKey);
  }

  /** A group was opened: what it has in R2 stays with the run. */
  opened(openKey: string, bytes: number): void {
    this.#staged.delete(openKey);
    if (bytes === 0) return;
    this.#known.bodies += bytes;
    this.#meta.set("bodiesBytes", this.#known.bodies);
  }

  childAdded(seq: number): void {
    this.#known.children = Math.max(this.#known.children, seq);
  }

  /** The storage was deleted, or the run was opened. */
  lookAgain(): void {
    this.#stored = null;
  }

  get #ownBytes(): number {
    const { files, bodies, children } = this.#known;
    let staged = 0;
    for (const bytes of this.#staged.values()) staged += bytes;
    return this.#rows.storedBytes + files + bodies + staged + children * RUN_FLOOR_BYTES;
  }

  get #known(): Stored {
    return (this.#stored ??= this.#read());
  }

  #read(): Stored {
    if (!this.#meta.exists) return { files: 0, bodies: 0, children: 0, tree: null };
    const last = this.#rows.first<{ seq: number | null }>("child", "SELECT max(seq) AS seq FROM child");
    const isRoot = this.#meta.get("settings")?.parentId === null;
    const allowed = this.#rows.read<{ id: string; bytes: number }>("space", "SELECT id, bytes FROM space");
    return {
      files: this.#meta.get("filesBytes"),
      bodies: this.#meta.get("bodiesBytes"),
      children: last?.seq ?? 0,
      tree: isRoot ? new TreeAccount(allowed) : null,
    };
  }
}

/** `children`: as many as the run has ever opened. `tree` null = the run is a descendant. */
type Stored = { files: number; bodies: number; children: number; tree: TreeAccount | null };

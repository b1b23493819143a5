/** A client to copy into a sandbox: one file of its language. */
export type StubFile = {
  /** Its name at `/stubs/:lang`. */
  lang: string;
  /** The name to save it under: programs import it by that. */
  file: string;
  /** Its `content-type`. */
  type: string;
  text: string;
};

/** All stubs, in the order in which `/stubs` lists them. */
export const STUB_FILES: readonly StubFile[];

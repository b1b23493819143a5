/** What tests break on purpose, and how the runtime reports it: output that says nothing about a failure. */

const INTENDED: readonly RegExp[] = [
  // Every error that a test throws into an object, or crashes one with, says that the test does it.
  /\bError: the test (crashes|keeps|lets|loses)\b/,
  /\bError: the upstream was told to break the connection/,
  /\bjsg\.Error: Application called abortAllDurableObjects/,
  // An object that aborts itself. Why it does so is in an error of its own, which is reported apart.
  /\bjsg\.Error: a turn failed/,
  // An object that cannot reach another, which a test keeps overloaded.
  /\bRefusal: overloaded/,
  // What SQLite says of a full disk, which a test throws word for word.
  /\bError: database or disk is full: SQLITE_FULL/,
  // Lanes that a test keeps out of reach.
  /lanes of \S+ could not be started; retrying/,
  // Alarms that a test has rung by hand, or whose time it has put forward.
  /^NOSENTRY SQLite alarm (overdue|handler canceled)/,
];

/** Whether a message of the runtime, or of the gateway under test, tells of what a test has broken. */
export function isIntended(message: string): boolean {
  return INTENDED.some((pattern) => pattern.test(message));
}

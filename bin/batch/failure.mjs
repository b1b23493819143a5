/**
 * A way for the command to end that is no bug: its message is for the person. Thrown, because it crosses every layer up
 * to the one place that prints it.
 */
export class Failure extends Error {
  /** @readonly */
  exitCode;

  /**
   * @param {string} message Without control characters: what comes from elsewhere went through `printable`.
   * @param {number} [exitCode] Default 1.
   */
  constructor(message, exitCode = 1) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
  }
}

/**
 * An expected failure of the command, with a message for the user. It is thrown because it crosses every layer up to the one
 * place that prints it.
 */
export class Failure extends Error {
  readonly exitCode: number;

  /**
   * @param message Without control characters: text of others must go through `printable` first.
   * @param exitCode Default 1.
   */
  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = "Failure";
    this.exitCode = exitCode;
  }
}

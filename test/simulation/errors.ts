/** What calls between activities fail with, as workerd's errors look to their callers: see src/objects/clients/retry.ts. */

/** The connection broke: whether the call was made is unknown. */
export function connectionLost(): Error {
  return Object.assign(new Error("Network connection lost."), { retryable: true });
}

/** The instance ended. */
export function objectReset(): Error {
  return Object.assign(new Error("The object was reset."), { durableObjectReset: true });
}

/** A method threw. */
export function remoteError(error: unknown): Error {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return Object.assign(new Error(message), { name, stack, remote: true });
}

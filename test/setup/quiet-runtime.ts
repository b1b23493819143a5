/** Leaves out of the output what the runtime reports of errors that tests make. It writes in vitest's main process. */
import { isIntended } from "../support/intended-errors.ts";

export default function setup(): () => void {
  const restore = [process.stdout, process.stderr].map(quieted);
  return () => restore.forEach((each) => each());
}

/** How the runtime's reports begin: what vitest says of a test that fails is never left out. */
const RUNTIME_REPORT = /^(uncaught exception;|exception = |NOSENTRY )/;

/** Filters what is written to a stream. Returns the function that ends it. */
function quieted(stream: NodeJS.WriteStream): () => void {
  const plain: unknown = Reflect.get(stream, "write");
  if (typeof plain !== "function") throw new Error("a standard stream has no write");
  Reflect.set(stream, "write", (...args: unknown[]): unknown => {
    const [chunk] = args;
    const isNoise = typeof chunk === "string" && RUNTIME_REPORT.test(chunk) && isIntended(chunk);
    return isNoise ? true : Reflect.apply(plain, stream, args);
  });
  return () => void Reflect.set(stream, "write", plain);
}

/** Reads the text of a context, or a part of it. */
import { contextKey, runFilesOf, type Objects } from "../address.ts";
import type { PlacedContext } from "../../call.ts";

/** Where the bytes of a text are. */
export type TextPart = Pick<PlacedContext, "id" | "object" | "from" | "to">;

/** Reads bytes of a stored text; null if the context was deleted. Rejects if the store cannot be reached. */
export async function readText(
  objects: Objects,
  runId: string,
  { id, object, from, to }: TextPart,
): Promise<Uint8Array | null> {
  if (object === undefined) return await runFilesOf(objects, runId).contextText(id, from, to);
  const stored = await objects.FILES?.get(contextKey(runId, object), { range: { offset: from, length: to - from } });
  return stored == null ? null : new Uint8Array(await stored.arrayBuffer());
}

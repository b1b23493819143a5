/** Deletes objects of R2 by the beginning of their keys. */

/** Deletes every object whose key begins with the prefix. Safe to repeat. */
export async function emptyPrefix(bucket: R2Bucket, prefix: string): Promise<void> {
  for (let cursor: string | null = null; ;) {
    const listed: R2Objects = await bucket.list(cursor === null ? { prefix } : { prefix, cursor });
    if (listed.objects.length > 0) await bucket.delete(listed.objects.map(({ key }) => key));
    if (!listed.truncated) return;
    cursor = listed.cursor;
  }
}

/** A bucket that counts its operations, and whose parts can be made to fail. */

export type WatchedBucket = {
  bucket: R2Bucket;
  /** Names of the calls, in order. */
  calls: string[];
  uploads: R2MultipartUpload[];
  /** Most parts that were on their way at once. */
  partsPeak: number;
  /** The buffers that parts came from. */
  buffers: Set<ArrayBufferLike>;
  /** Part numbers that fail, once each. */
  failing: Set<number>;
  /** Whether `complete` works and then fails to say so. */
  isCompleteLost: boolean;
};

export function watchBucket(real: R2Bucket): WatchedBucket {
  const watched: WatchedBucket = {
    bucket: real,
    calls: [],
    uploads: [],
    partsPeak: 0,
    buffers: new Set(),
    failing: new Set(),
    isCompleteLost: false,
  };
  let onTheirWay = 0;
  const watchUpload = (upload: R2MultipartUpload): R2MultipartUpload => {
    watched.uploads.push(upload);
    return {
      key: upload.key,
      uploadId: upload.uploadId,
      async uploadPart(partNumber, value) {
        watched.calls.push(`uploadPart ${partNumber}`);
        if (ArrayBuffer.isView(value)) watched.buffers.add(value.buffer);
        if (watched.failing.delete(partNumber)) throw new Error(`part ${partNumber} was lost`);
        onTheirWay += 1;
        watched.partsPeak = Math.max(watched.partsPeak, onTheirWay);
        try {
          return await upload.uploadPart(partNumber, value);
        } finally {
          onTheirWay -= 1;
        }
      },
      abort() {
        watched.calls.push("abort");
        return upload.abort();
      },
      async complete(parts) {
        watched.calls.push("complete");
        const made = await upload.complete(parts);
        if (watched.isCompleteLost) throw new Error("the answer was lost");
        return made;
      },
    };
  };
  const own: Partial<R2Bucket> = {
    async createMultipartUpload(key, options) {
      watched.calls.push("createMultipartUpload");
      return watchUpload(await real.createMultipartUpload(key, options));
    },
    resumeMultipartUpload: (key, uploadId) => watchUpload(real.resumeMultipartUpload(key, uploadId)),
  };
  watched.bucket = new Proxy(real, {
    get(target, name) {
      const replaced: unknown = Reflect.get(own, name);
      if (replaced !== undefined) return replaced;
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => {
        watched.calls.push(String(name));
        return Reflect.apply(method, target, args);
      };
    },
  });
  return watched;
}

/** Bytes that differ from place to place, so that a part in the wrong place shows. */
export function patternBytes(length: number): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let index = 0; index < words.length; index += 1) words[index] = Math.imul(index, 2_654_435_761);
  return new Uint8Array(words.buffer, 0, length);
}

/** Whether two sequences of bytes are equal; `toEqual` on millions of them takes minutes. */
export function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && crypto.subtle.timingSafeEqual(a, b);
}

export async function contentOf(bucket: R2Bucket, key: string): Promise<Uint8Array> {
  const object = await bucket.get(key);
  if (object === null) throw new Error(`${key} is missing`);
  return new Uint8Array(await object.arrayBuffer());
}

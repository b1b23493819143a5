/**
 * A schema, or what is made of some, that is built when it is first used. An isolate parses the bodies of few routes, an object's of
 * hardly any and often no configuration, and only the OpenAPI document shows replies: thousands of schemas would be a part of each start.
 * Returns the same schema at each call, since a name in the document stands for one.
 */
export function atFirstUse<Schema>(build: () => Schema): () => Schema {
  let built: { schema: Schema } | null = null;
  return () => (built ??= { schema: build() }).schema;
}

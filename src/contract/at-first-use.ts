/**
 * A schema that is built when it is first used. Most isolates never use those of replies, which the OpenAPI document shows and hardly
 * anything parses with: thousands of schemas were a part of each start. Returns the same schema at each call, since a name in the
 * document stands for one.
 */
export function atFirstUse<Schema>(build: () => Schema): () => Schema {
  let built: { schema: Schema } | null = null;
  return () => (built ??= { schema: build() }).schema;
}

/** The binding of Workers AI, as far as the gateway uses it. */

/** What `run` takes beside the inputs of a model. */
export type RunOptions = {
  /** The answer as the binding got it, with its status: else a failure is an exception. */
  returnRawResponse: true;
  signal?: AbortSignal;
  /** The AI Gateway through which the call goes. */
  gateway?: { id: string };
};

/** `env.AI`: https://developers.cloudflare.com/workers-ai/configuration/bindings/. */
export type ModelBinding = {
  run: (model: string, inputs: Record<string, unknown>, options: RunOptions) => Promise<Response>;
};

/** How calls of an upstream reach the binding. */
export type BoundModels = {
  /** Absent where the Worker has no such binding: nothing can be sent then. */
  binding?: ModelBinding;
  /** The id of an AI Gateway; absent = calls go through none. */
  gateway?: string;
};

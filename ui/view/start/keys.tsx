import { useSignal } from "@preact/signals";
import { ApiError, type Api, type Json } from "../../api.ts";
import { limitedKey } from "../../model/runs/keys.ts";

type Props = { api: Api; keys: readonly Json[] | null; nowMs: number; refused: (error: ApiError) => void };

/** Keys that are shrunk, paced or stopped, each with its reason; one line if all are open. */
export function Keys({ api, keys, nowMs, refused }: Props) {
  const isBusy = useSignal(false);
  if (keys === null || keys.length === 0) return null;
  const limited = keys.flatMap((gate) => limitedKey(gate, nowMs) ?? []);
  const resume = (upstream: string) => () => {
    isBusy.value = true;
    api
      .json(`/upstreams/${encodeURIComponent(upstream)}/resume`, { method: "POST" })
      .catch((error: unknown) => refused(error instanceof ApiError ? error : new ApiError(0, String(error))))
      .finally(() => void (isBusy.value = false));
  };
  return (
    <section aria-label="Keys">
      <h2 class="away">Keys</h2>
      {limited.length === 0 && (
        <p class="dim">
          {keys.length === 1 ? "The key of the upstream is open." : `All ${keys.length} keys of upstreams are open.`}
        </p>
      )}
      <ul class="notices">
        {limited.map(({ name, upstream, isStopped, text }) => (
          <li key={name} class={isStopped ? "bad" : "slow"}>
            <b>{name}</b> <span>{text}</span>
            {isStopped && (
              <button type="button" disabled={isBusy.value} onClick={resume(upstream)}>
                Try {name} now
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

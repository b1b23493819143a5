"""rlm with its local REPL: the model's code asks a sub-model about each part of the text, all at once."""

import json
import os

from rlm import RLM

rlm = RLM(backend="openai", backend_kwargs={"model_name": os.environ["MODEL"], "base_url": os.environ["OPENAI_BASE_URL"]})
TEXT = "one two three\n\nfour five\n\nsix"
completion = rlm.completion(TEXT, root_prompt="How many words has the text?")
usage = completion.usage_summary.model_usage_summaries[os.environ["MODEL"]]
report = {
    "answer": completion.response,
    "calls": usage.total_calls,
    "prompt_tokens": usage.total_input_tokens,
    "completion_tokens": usage.total_output_tokens,
    "cost_usd": usage.total_cost,
}
print(json.dumps(report))

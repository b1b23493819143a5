"""minRLM with its local REPL: the model's code asks a sub-model about each part of the text, all at once."""

import json
import os

from minrlm import RLM

rlm = RLM(model=os.environ["MODEL"])
TEXT = "one two three\n\nfour five\n\nsix"
result = rlm.completion(task="How many words has the text?", context=TEXT)
report = {
    "answer": result.response,
    "prompt_tokens": result.input_tokens,
    "completion_tokens": result.output_tokens,
}
print(json.dumps(report))

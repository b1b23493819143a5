"""rlm whose model's code fans out calls that use a tool: `llm_batch` of the stub is one more function of its REPL."""

import json
import os

from fanout import llm_batch
from rlm import RLM

DESCRIPTION = "llm_batch(prompts, tools=[names]): the answers of sub-models, which use these tools of the gateway's run"
rlm = RLM(
    backend="openai",
    backend_kwargs={"model_name": os.environ["MODEL"], "base_url": os.environ["OPENAI_BASE_URL"]},
    custom_tools={"llm_batch": {"tool": llm_batch, "description": DESCRIPTION}},
)
completion = rlm.completion("one\n\ntwo", root_prompt="How many letters do the tools count?")
print(json.dumps({"answer": completion.response}))

"""verifiers: a harness whose program asks sub-models about each part of the text, all at once, and lets them use a tool."""

import asyncio
import json
import os
import sys

import verifiers.v1 as vf

TEXT = "one two three\n\nfour five\n\nsix"

# What the harness runs in a process of its own. verifiers records the model's call and relays it; the sub-models and their
# tools are calls of the gateway.
AGENT = """
import sys
from fanout import llm_batch
from openai import OpenAI

url, key, model, text = sys.argv[1:]
counts = llm_batch(text.split("\\n\\n"), tools=["letters"])
messages = [{"role": "user", "content": f"Say the sum of {' and '.join(counts)}."}]
OpenAI(base_url=url, api_key=key).chat.completions.create(model=model, messages=messages)
"""
STUB = {name: os.environ[name] for name in ("FANOUT_URL", "FANOUT_TOKEN", "PYTHONPATH")}


class PartsHarness(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None):
        program = [sys.executable, "-c", AGENT, endpoint, secret, ctx.model, data.prompt]
        return await runtime.run_program(program, {**self.config.resolved_env, **STUB})


class CountTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def answered(self, trace: vf.Trace) -> float:
        return float("18" in trace.last_reply)


__all__ = ["PartsHarness"]


async def main():
    config = vf.AgentConfig(
        harness={"id": "verifiers_tools_program"},
        runtime=vf.SubprocessConfig(),
        model=os.environ["MODEL"],
        client=vf.EvalClientConfig(base_url=os.environ["OPENAI_BASE_URL"], api_key_var="OPENAI_API_KEY"),
    )
    async with vf.make_agent(config) as agent:
        return await agent.run(CountTask(vf.TaskData(prompt=TEXT), vf.TaskConfig()))


if __name__ == "__main__":
    trace = asyncio.run(main())
    if trace.errors:
        sys.exit(f"{trace.errors[-1].type}: {trace.errors[-1].message}")
    print(json.dumps({"answer": trace.last_reply, "reward": trace.reward}))

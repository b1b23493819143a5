"""verifiers: a task, its reward, and a harness whose program asks the model about each part of the text, all at once."""

import asyncio
import json
import os
import sys

import verifiers.v1 as vf

TEXT = "one two three\n\nfour five\n\nsix"

# What the harness runs in a process of its own. verifiers records its calls and relays them.
AGENT = """
import asyncio, sys
from openai import AsyncOpenAI

url, key, model, text = sys.argv[1:]

async def main():
    async with AsyncOpenAI(base_url=url, api_key=key) as client:
        async def ask(content):
            messages = [{"role": "user", "content": content}]
            return (await client.chat.completions.create(model=model, messages=messages)).choices[0].message.content
        counts = await asyncio.gather(*(ask(f"Count words: {part}") for part in text.split("\\n\\n")))
        await ask(f"Say the sum of {' and '.join(counts)}.")

asyncio.run(main())
"""


class PartsHarness(vf.Harness[vf.HarnessConfig]):
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None):
        program = [sys.executable, "-c", AGENT, endpoint, secret, ctx.model, data.prompt]
        return await runtime.run_program(program, self.config.resolved_env)


class CountTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def answered(self, trace: vf.Trace) -> float:
        return float("6" in trace.last_reply)


__all__ = ["PartsHarness"]


async def main():
    config = vf.AgentConfig(
        harness={"id": "verifiers_program"},
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
    report = {
        "answer": trace.last_reply,
        "calls": len(trace.calls),
        "prompt_tokens": trace.usage.prompt_tokens,
        "completion_tokens": trace.usage.completion_tokens,
        "cost_usd": trace.usage.cost,
    }
    print(json.dumps(report))

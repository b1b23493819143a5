"""pydantic-ai: an agent with a tool, a stream, structured output, a conversation."""

import asyncio
import json
import os

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.usage import RunUsage

model = OpenAIChatModel(os.environ["MODEL"])
usage = RunUsage()


class City(BaseModel):
    city: str


reporter = Agent(model)
finder = Agent(model, output_type=City)
repeater = Agent(model)


@reporter.tool_plain
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def main():
    reported = await reporter.run("How is the weather in Zürich?", usage=usage)
    async with repeater.run_stream("one two", usage=usage) as stream:
        streamed = await stream.get_output()
    found = await finder.run("Where?", usage=usage)
    again = await repeater.run("three", message_history=stream.all_messages(), usage=usage)
    return f"{reported.output} {streamed} {found.output.city} {again.output}"


report = {"answer": asyncio.run(main()), "calls": usage.requests}
report |= {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
print(json.dumps(report))

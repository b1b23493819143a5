"""Anthropic's client: a message, a stream, an async fan-out, a tool."""

import asyncio
import json
import os

from anthropic import Anthropic, AsyncAnthropic

model = os.environ["MODEL"]
client = Anthropic()
messages = []


def asked(content):
    return {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": content}]}


messages.append(client.messages.create(**asked("one")))

with client.messages.stream(**asked("two three")) as stream:
    streamed = "".join(stream.text_stream)
    messages.append(stream.get_final_message())


async def fan_out(words):
    async with AsyncAnthropic() as asynchronous:
        return await asyncio.gather(*(asynchronous.messages.create(**asked(word)) for word in words))


messages.extend(asyncio.run(fan_out(["four", "five", "six"])))

city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
tool = {"name": "weather", "description": "The weather of a city.", "input_schema": city}
used = client.messages.create(**asked("How is the weather in Zürich?"), tools=[tool])
messages.append(used)
(call,) = (block for block in used.content if block.type == "tool_use")

texts = [block.text for message in messages[:-1] for block in message.content]
report = {
    "answer": f"{' '.join(texts)} {call.input['city']}",
    "calls": len(messages),
    "prompt_tokens": sum(message.usage.input_tokens for message in messages),
    "completion_tokens": sum(message.usage.output_tokens for message in messages),
}
print(json.dumps(report))

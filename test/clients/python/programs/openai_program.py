"""OpenAI's client: a chat, a stream, an async fan-out, structured output."""

import asyncio
import json
import os

from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

model = os.environ["MODEL"]
client = OpenAI()
usages = []


def message(content):
    return [{"role": "user", "content": content}]


class Answer(BaseModel):
    answer: int


first = client.chat.completions.create(model=model, messages=message("one"))
usages.append(first.usage)

streamed = ""
for chunk in client.chat.completions.create(
    model=model, messages=message("two three"), stream=True, stream_options={"include_usage": True}
):
    if chunk.usage is not None:
        usages.append(chunk.usage)
    for choice in chunk.choices:
        streamed += choice.delta.content or ""


async def fan_out(words):
    async with AsyncOpenAI() as asynchronous:
        asked = (asynchronous.chat.completions.create(model=model, messages=message(word)) for word in words)
        return await asyncio.gather(*asked)


answers = asyncio.run(fan_out(["four", "five", "six"]))
usages.extend(answer.usage for answer in answers)

parsed = client.chat.completions.parse(model=model, messages=message("What is it?"), response_format=Answer)
usages.append(parsed.usage)

texts = [first.choices[0].message.content, streamed, *(answer.choices[0].message.content for answer in answers)]
report = {
    "answer": f"{' '.join(texts)} {parsed.choices[0].message.parsed.answer}",
    "calls": len(usages),
    "prompt_tokens": sum(usage.prompt_tokens for usage in usages),
    "completion_tokens": sum(usage.completion_tokens for usage in usages),
}
print(json.dumps(report))

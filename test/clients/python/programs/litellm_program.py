"""LiteLLM's library: a chat, a stream, an async fan-out, structured output."""

import asyncio
import json
import os

import litellm
from pydantic import BaseModel

model = f"openai/{os.environ['MODEL']}"


class Answer(BaseModel):
    answer: int


def asked(content):
    return {"model": model, "messages": [{"role": "user", "content": content}]}


async def main():
    usages = []
    first = await litellm.acompletion(**asked("one"))
    usages.append(first.usage)
    streamed = ""
    async for chunk in await litellm.acompletion(
        **asked("two three"), stream=True, stream_options={"include_usage": True}
    ):
        streamed += chunk.choices[0].delta.content or ""
        if getattr(chunk, "usage", None) is not None:
            usages.append(chunk.usage)
    answers = await asyncio.gather(*(litellm.acompletion(**asked(word)) for word in ["four", "five", "six"]))
    usages.extend(answer.usage for answer in answers)
    parsed = await litellm.acompletion(**asked("What is it?"), response_format=Answer)
    usages.append(parsed.usage)
    texts = [first.choices[0].message.content, streamed, *(answer.choices[0].message.content for answer in answers)]
    answer = Answer.model_validate_json(parsed.choices[0].message.content).answer
    return " ".join([*texts, str(answer)]), usages


answer, usages = asyncio.run(main())
report = {
    "answer": answer,
    "calls": len(usages),
    "prompt_tokens": sum(usage.prompt_tokens for usage in usages),
    "completion_tokens": sum(usage.completion_tokens for usage in usages),
}
print(json.dumps(report))

"""LlamaIndex with OpenAI's models: a completion, a chat, a stream, an async fan-out, structured output."""

import asyncio
import json
import os

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI

# It knows the context windows of OpenAI's models only, so the model has the name of one of them.
gateway = {"model": os.environ["MODEL"], "api_base": os.environ["OPENAI_BASE_URL"]}
plain = OpenAI(**gateway)
streaming = OpenAI(**gateway, additional_kwargs={"stream_options": {"include_usage": True}})
raw = []
first = plain.complete("one")
raw.append(first.raw)
second = plain.chat([ChatMessage(role="user", content="two")])
raw.append(second.raw)
streamed = ""
for part in streaming.stream_chat([ChatMessage(role="user", content="three four")]):
    streamed += part.delta or ""
raw.append(part.raw)


async def fan_out(words):
    return await asyncio.gather(*(plain.acomplete(word) for word in words))


answers = asyncio.run(fan_out(["five", "six"]))
raw.extend(answer.raw for answer in answers)
texts = [first.text, second.message.content, streamed, *(answer.text for answer in answers)]
report = {
    "answer": " ".join(texts),
    "calls": len(raw),
    "prompt_tokens": sum(each.usage.prompt_tokens for each in raw),
    "completion_tokens": sum(each.usage.completion_tokens for each in raw),
}
print(json.dumps(report))

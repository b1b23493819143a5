"""instructor: an object by a tool, one by a JSON schema, an async fan-out."""

import asyncio
import json
import os

import instructor
from pydantic import BaseModel

usages = []


class City(BaseModel):
    city: str


class Answer(BaseModel):
    answer: int


client = instructor.from_provider(f"openai/{os.environ['MODEL']}")
by_schema = instructor.from_provider(f"openai/{os.environ['MODEL']}", mode=instructor.Mode.JSON_SCHEMA)


def ask(which, response_model, content):
    messages = [{"role": "user", "content": content}]
    value, completion = which.create_with_completion(response_model=response_model, messages=messages)
    usages.append(completion.usage)
    return value


city = ask(client, City, "Where?").city
answer = ask(by_schema, Answer, "What is it?").answer


async def fan_out(questions):
    asynchronous = instructor.from_provider(f"openai/{os.environ['MODEL']}", async_client=True)
    asked = (
        asynchronous.create_with_completion(response_model=City, messages=[{"role": "user", "content": question}])
        for question in questions
    )
    return await asyncio.gather(*asked)


cities = asyncio.run(fan_out(["And now?", "And then?"]))
usages.extend(completion.usage for _, completion in cities)
report = {
    "answer": f"{city} {answer} {' '.join(each.city for each, _ in cities)}",
    "calls": len(usages),
    "prompt_tokens": sum(usage.prompt_tokens for usage in usages),
    "completion_tokens": sum(usage.completion_tokens for usage in usages),
}
print(json.dumps(report))

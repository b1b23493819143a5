"""LangChain with OpenAI's models: a chat, a stream, a batch, structured output, a tool. Its own callback counts the tokens."""

import json
import os

from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Calls(BaseCallbackHandler):
    count = 0

    def on_llm_end(self, response, **_):
        self.count += 1


class Answer(BaseModel):
    answer: int


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


calls = Calls()
llm = ChatOpenAI(model=os.environ["MODEL"], stream_usage=True, callbacks=[calls])
with get_usage_metadata_callback() as usage:
    texts = [llm.invoke("one").text]
    texts.append("".join(chunk.text for chunk in llm.stream("two three")))
    texts.extend(answer.text for answer in llm.batch(["four", "five", "six"]))
    texts.append(str(llm.with_structured_output(Answer).invoke("What is it?").answer))
    (call,) = llm.bind_tools([weather]).invoke("How is the weather in Zürich?").tool_calls
    texts.append(weather.invoke(call["args"]))

(counted,) = usage.usage_metadata.values()
report = {
    "answer": " ".join(texts),
    "calls": calls.count,
    "prompt_tokens": counted["input_tokens"],
    "completion_tokens": counted["output_tokens"],
}
print(json.dumps(report))

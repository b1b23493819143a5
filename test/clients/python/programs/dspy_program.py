"""dspy: a predictor, and dspy.RLM with its local interpreter: the model's code asks a sub-model about each part at once."""

import json
import os

import dspy

lm = dspy.LM(f"openai/{os.environ['MODEL']}", cache=False)
dspy.configure(lm=lm, track_usage=True)
TEXT = "one two three\n\nfour five\n\nsix"
rlm = dspy.RLM("context, query -> answer: int", interpreter_factory=dspy.LocalInterpreter)
prediction = rlm(context=TEXT, query="How many words has the text?")
calls = lm.history
report = {
    "answer": prediction.answer,
    "calls": len(calls),
    "prompt_tokens": sum(call["usage"]["prompt_tokens"] for call in calls),
    "completion_tokens": sum(call["usage"]["completion_tokens"] for call in calls),
}
print(json.dumps(report))

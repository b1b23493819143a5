"""dspy.RLM over images: the model's code asks another model, which sees, about each of them, all at once."""

import base64
import json
import os
import struct
import zlib

import dspy


def png(red, green, blue):
    """A picture of 64 x 64 pixels of one colour."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes((red, green, blue)) * 64) * 64)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return dspy.Image("data:image/png;base64," + base64.b64encode(data).decode())


IMAGES = [png(255, 0, 0), png(0, 0, 255), png(0, 255, 0)]
sees = dspy.LM(f"openai/{os.environ['VISION_MODEL']}", cache=False, max_tokens=100)
dspy.configure(lm=dspy.LM(f"openai/{os.environ['MODEL']}", cache=False))
predict = dspy.Predict("image: dspy.Image, question -> answer")


def look(question: str) -> list[str]:
    """Asks about each image."""
    examples = [dspy.Example(image=image, question=question).with_inputs("image", "question") for image in IMAGES]
    with dspy.context(lm=sees):
        return [answer.answer for answer in predict.batch(examples, num_threads=len(IMAGES), disable_progress_bar=True)]


rlm = dspy.RLM("query -> answer", tools=[look], interpreter_factory=dspy.LocalInterpreter)
prediction = rlm(query="Which colours have the images?")
print(json.dumps({"answer": prediction.answer}))

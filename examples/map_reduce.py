"""Map-reduce over a book: about 100 parallel calls count colour words, and one more call adds up the counts.

    FANOUT_URL=… FANOUT_TOKEN=… python3 examples/map_reduce.py [text file]

FANOUT_MODEL selects the model. The default is the gateway's simulated model, which needs no key. `npm run demo` starts a
gateway, opens a run, and runs this program.
"""
import os
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stubs", "python"))
from fanout import FanoutError, llm_query, llm_run, llm_stream  # noqa: E402

# 200 ms per answer, so that the progress of the simulated calls is visible.
MODEL = os.environ.get("FANOUT_MODEL") or "sim/names?ms=200"
WORDS = ["red", "orange", "yellow", "green", "blue", "indigo", "violet", "purple", "white", "black"]
CHUNKS = 100
WIDTH = 32
BAR = 40

MAP = """Count how often each of the words occurs in the text, in upper or lower case. Answer with one line per word, as `word: n`, nothing else.
Words: {words}
Text:
{text}"""
REDUCE = """Below are counts of words, from many parts of one book. Add them up, word by word. Answer with one line per word, as `word: n`, nothing else.

{counts}"""


def chunks_of(text, count):
    """Splits the text into about `count` pieces of similar size, only between paragraphs."""
    size, pieces, piece = len(text) / count, [], ""
    for paragraph in re.split(r"\n\s*\n", text):
        if piece and len(piece) + len(paragraph) / 2 > size:
            pieces.append(piece)
            piece = ""
        piece += ("\n\n" if piece else "") + paragraph
    return pieces + [piece] if piece else pieces


def show_progress(done, failed, total):
    """Redraws a bar on a terminal; elsewhere prints a line for each tenth."""
    note = ", {} failed".format(failed) if failed else ""
    if sys.stdout.isatty():
        filled = BAR * done // total
        sys.stdout.write("\r  [{}{}] {}/{}{}".format("█" * filled, "·" * (BAR - filled), done, total, note))
        sys.stdout.write("\n" if done == total else "")
        sys.stdout.flush()
    elif done * 10 // total > (done - 1) * 10 // total:
        print("  {}/{} sub-calls ended{}".format(done, total, note), flush=True)


def fan_out(prompts):
    """Returns the answers by index (None for a failed slot), and shows the progress."""
    answers, done, failed, group, started = [None] * len(prompts), 0, 0, None, time.monotonic()
    for event in llm_stream(prompts, MODEL, concurrency=WIDTH, max_tokens=400, temperature=0):
        if group is None:
            group = event.get("parallel_group_id")
            print("⚡ Parallel Execution Started: {} sub-calls in group {}".format(len(prompts), group), flush=True)
        if event["type"] == "slot":
            answers[event["index"]] = None if event.get("error") else event["result"]
            if event.get("error") and not failed:
                print("! slot {}: {}".format(event["index"], event["error"]["message"]), file=sys.stderr)
            done, failed = done + 1, failed + bool(event.get("error"))
            show_progress(done, failed, len(prompts))
        elif event["type"] == "group_completed":
            show_group(event, time.monotonic() - started)
    return answers


def show_group(event, seconds):
    metrics, usage = event["metrics"], event["usage"]
    print("✓ Parallel Execution Complete ({:.2f}s)".format(seconds))
    print("  one after another: {:.2f}s · speed-up {:.1f}x · {} at once at the peak · ${:.6f}".format(
        metrics["sequential_ms"] / 1000, metrics["speedup"] or 1, metrics["peak_parallel"], usage["cost"]))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "data", "opticks.txt")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    pieces = chunks_of(text, CHUNKS)
    print("{}: {:,} characters in {} chunks, model {}".format(os.path.basename(path), len(text), len(pieces), MODEL))
    answers = fan_out([MAP.format(words=", ".join(WORDS), text=piece) for piece in pieces])
    counts = [answer.strip() for answer in answers if answer]
    if len(counts) < len(pieces):
        print("! {} of {} chunks are missing from the sums".format(len(pieces) - len(counts), len(pieces)), file=sys.stderr)
    if not counts:
        return 1
    answer = llm_query(REDUCE.format(counts="\n".join(counts)), MODEL, max_tokens=400, temperature=0)
    sums = {word.lower(): int(number) for word, number in re.findall(r"(\w+)\W*: *(\d+)", answer)}
    if not sums:
        print("! {} answered without any counts".format(MODEL), file=sys.stderr)
    print("\nColour words in the book")
    for word in sorted(WORDS, key=lambda word: -sums.get(word, 0)):
        print("  {:<8}{:>6}".format(word, sums.get(word, 0)))
    spent = llm_run()["budget"]["usd"]
    # At least two decimals: 0.25, 0.002.
    limit = "" if spent["limit"] is None else " of $" + re.sub("0{1,4}$", "", "{:.6f}".format(spent["limit"]))
    print("\nSpent ${:.6f}{} in all, for {} calls".format(spent["spent"], limit, len(pieces) + 1))
    return 0 if len(counts) == len(pieces) and sums else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FanoutError as error:
        sys.exit("{} ({})".format(error, error.code))

"""Edits as agents propose them, and what may be applied: plain functions on texts, without a network.

An edit is {"path", "search", "replace"}: the one place in the file where `search` stands becomes `replace`. An empty `search`
makes a new file. Two edits conflict if they touch overlapping or adjacent lines of one file, or if one deletes what the other
edits; of edits that conflict none is applied.
"""
import difflib
import json
import pathlib
import re
import subprocess

SCHEMA = {
    "type": "object",
    "properties": {
        "summary": {"type": "string"},
        "edits": {"type": "array", "maxItems": 50, "items": {
            "type": "object",
            "properties": {key: {"type": "string"} for key in ("path", "search", "replace", "why")},
            "required": ["path", "search", "replace", "why"], "additionalProperties": False}}},
    "required": ["summary", "edits"], "additionalProperties": False}
FORM = """Answer with JSON: {"summary": what you found, "edits": [{"path", "search", "replace", "why"}]}. search is a text that
stands exactly once in the file; replace is what stands there afterwards. An empty search makes a new file. No edits: []."""


def edits_in(output):
    """The summary and the edits of an agent's output: its first JSON object with edits. An output without one has none."""
    for start in re.finditer(r"\{", output):
        try:
            found, _ = json.JSONDecoder().raw_decode(output, start.start())
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("edits"), list):
            edits = [each for each in found["edits"] if isinstance(each, dict) and
                     all(isinstance(each.get(key), str) for key in ("path", "search", "replace"))]
            return str(found.get("summary", "")), edits
    return output.strip(), []


def place_of(edit, root):
    """Where an edit is in its file: (path, first line, last line, None), or (path, 0, 0, why it fits nowhere)."""
    path = pathlib.PurePosixPath(edit["path"])
    if path.is_absolute() or ".." in path.parts or ".git" in path.parts or not path.parts or "\\" in edit["path"]:
        return str(path), 0, 0, "its path leaves the folder"
    file = pathlib.Path(root, *path.parts)
    if not file.resolve().is_relative_to(pathlib.Path(root).resolve()):
        return str(path), 0, 0, "its path leaves the folder"
    if edit["search"] == "":
        return str(path), 0, 10 ** 9, "the file exists already" if file.exists() else None
    if not file.is_file():
        return str(path), 0, 0, "there is no such file"
    text = read(file)
    found = text.count(edit["search"])
    if found != 1:
        return str(path), 0, 0, "its text stands {} times in the file".format(found)
    at = text.index(edit["search"])
    first = text.count("\n", 0, at) + 1
    return str(path), first, first + edit["search"][:-1].count("\n"), None


def read(file):
    with open(file, encoding="utf-8", newline="") as opened:
        return opened.read()


def judge(edits, root):
    """Sets `problem` of each edit that fits nowhere, and `conflicts_with` of each: the ids of those that it must not meet."""
    placed = []
    for edit in edits:
        path, first, last, problem = place_of(edit, root)
        edit["problem"], edit["conflicts_with"] = problem, []
        if problem is None:
            placed.append((path, first, last, edit))
    for number, (path, first, last, edit) in enumerate(placed):
        for other_path, other_first, other_last, other in placed[:number]:
            if path == other_path and first <= other_last + 1 and other_first <= last + 1:
                edit["conflicts_with"].append(other["id"])
                other["conflicts_with"].append(edit["id"])
    return edits


def applicable(edits, root, every=False):
    """The edits that may be applied: they fit, conflict with none, and their review approved them, or `every`."""
    fresh = judge([dict(edit) for edit in edits], root)
    return [edit for edit in fresh if edit["problem"] is None and not edit["conflicts_with"]
            and (every or (edit.get("review") or {}).get("approved") is True)]


def state_of(edit):
    """What is to be said of an edit that was judged."""
    said = edit.get("review") or {}
    if edit["problem"] is not None:
        return edit["problem"]
    if edit["conflicts_with"]:
        return "conflicts with " + ", ".join(edit["conflicts_with"])
    return "approved" if said.get("approved") is True else "not approved: " + said.get("reason", "it was not reviewed")


def patch_of(edits, root):
    """A unified diff of edits that fit and do not conflict."""
    pieces = []
    for path in dict.fromkeys(str(pathlib.PurePosixPath(edit["path"])) for edit in edits):
        mine = [edit for edit in edits if str(pathlib.PurePosixPath(edit["path"])) == path]
        file = pathlib.Path(root, path)
        before = read(file) if file.exists() else ""
        # From the end, so that the places of the others stay.
        after = before
        for edit in sorted(mine, key=lambda each: before.find(each["search"]), reverse=True):
            at = before.index(edit["search"]) if edit["search"] else 0
            after = after[:at] + edit["replace"] + after[at + len(edit["search"]):]
        source = "a/" + path if file.exists() else "/dev/null"
        for line in difflib.unified_diff(lines_of(before), lines_of(after), source, "b/" + path):
            pieces.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(pieces)


def lines_of(text):
    # Not splitlines, which also splits at characters that are no ends of lines for git.
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def apply(edits, root):
    """Writes the edits to their files, all or none. Raises ValueError with what git says if the patch does not apply."""
    patch = patch_of(edits, root)
    if patch == "":
        return
    for options in (["--check"], []):
        # The settings of a repository must not change what is written.
        command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", *options]
        ended = subprocess.run(command, input=patch.encode(), cwd=root, capture_output=True, check=False)
        if ended.returncode:
            raise ValueError("the patch does not apply: " + ended.stderr.decode(errors="replace").strip())

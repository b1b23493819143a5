"""200 random proposals for examples/coordinator/edits.py, each compared with lists of lines: `random_proposals.py MODULE_FOLDER SEED`."""
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import edits  # noqa: E402

FILES = ("a.py", "b/c.md", "d.txt")


def content(rng, path):
    """Lines that differ, so that each text stands in one place; some files end without a line feed."""
    lines = ["{} {} {}\n".format(path, number, rng.choice(["x", "été", "\u2028", "\t"])) for number in range(rng.randint(1, 12))]
    return lines[:-1] + [lines[-1].rstrip("\n")] if rng.random() < 0.3 else lines


def proposal(rng, before):
    """Edits of whole lines, with the lines that they replace: (edit, first, after last, new lines)."""
    made = []
    for number in range(rng.randint(1, 8)):
        edit = {"id": str(number), "why": "", "review": {"approved": rng.random() < 0.7, "reason": "no"}}
        if rng.random() < 0.15:
            path = rng.choice(["../out.py", "/etc/out", "new.py", "b/new.py", ".git/config", "a.py"])
            made.append(({**edit, "path": path, "search": "", "replace": "new {}\n".format(number)}, None, None, None))
            continue
        path = rng.choice(FILES)
        first = rng.randrange(len(before[path]))
        end = min(len(before[path]), first + rng.randint(1, 3))
        replaced = "".join(before[path][first:end])
        new = ["edit {} line {}\n".format(number, at) for at in range(rng.randint(0, 3))]
        if not replaced.endswith("\n") and new:
            new[-1] = new[-1].rstrip("\n")
        made.append(({**edit, "path": path, "search": replaced, "replace": "".join(new)}, first, end, new))
    return made


def meet(one, other):
    (a, first, end, _), (b, other_first, other_end, _) = one, other
    if a["path"] != b["path"]:
        return False
    if first is None or other_first is None:
        return a["search"] == b["search"] == "" and a["path"] in ("new.py", "b/new.py")
    # Overlapping, or with no line between them.
    return first <= other_end and other_first <= end


def check(seed, every):
    rng = random.Random(seed)
    before = {path: content(rng, path) for path in FILES}
    made = proposal(rng, before)
    with tempfile.TemporaryDirectory() as root:
        for path, lines in before.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            pathlib.Path(root, path).write_bytes("".join(lines).encode())
        chosen = edits.applicable([edit for edit, *_ in made], root, every)
        expected = [each for number, each in enumerate(made) if (each[1] is not None or each[0]["path"] in ("new.py", "b/new.py"))
                    and not any(meet(each, other) for at, other in enumerate(made) if at != number)
                    and (every or each[0]["review"]["approved"])]
        assert [edit["id"] for edit in chosen] == [each[0]["id"] for each in expected], (seed, chosen, expected)
        edits.apply(chosen, root)
        for path, lines in before.items():
            after = list(lines)
            for edit, first, end, new in sorted((each for each in expected if each[0]["path"] == path), key=lambda each: -each[1]):
                after[first:end] = new
            found = pathlib.Path(root, path).read_bytes().decode() if pathlib.Path(root, path).exists() else ""
            assert found == "".join(after), (seed, path, found, after)
        for edit, first, *_ in expected:
            if first is None:
                assert pathlib.Path(root, edit["path"]).read_text() == edit["replace"], seed
        assert not pathlib.Path(root, "..", "out.py").exists()
    return len(chosen), len(made)


applied, proposed = (sum(column) for column in zip(*(check(int(sys.argv[2]) + at, at % 2 == 0) for at in range(200))))
print("200 proposals, {} edits, {} applied, none that conflicts".format(proposed, applied))

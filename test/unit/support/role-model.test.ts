/** The model with roles answers from what it is sent, and from nothing else. */
import { expect, it } from "vitest";
import { roleAnswer } from "../../support/role-model/answer.ts";
import { valueOf } from "../../support/role-model/arithmetic.ts";

type Parts = { system?: string; schema?: Record<string, unknown> };

function ask(prompt: string, { system, schema }: Parts = {}): string {
  const messages = [
    ...(system === undefined ? [] : [{ role: "system", content: system }]),
    { role: "user", content: prompt },
  ];
  const response_format = schema && {
    type: "json_schema",
    json_schema: { schema: { type: "object", properties: schema } },
  };
  return roleAnswer({ prompt, body: { model: "m", messages, ...(response_format && { response_format }) } });
}

const FILE = '<file path="auth.py">\ndef login(text):\n    return eval(text)\n</file>';
const EDITS = { summary: {}, edits: {} };

it("reviews the files that it is given, and says so if there are none", () => {
  expect(ask("review auth.py")).toBe("I was given no file.");
  expect(JSON.parse(ask("review auth.py", { schema: EDITS }))).toEqual({ summary: "I was given no file.", edits: [] });
  expect(JSON.parse(ask(`review\n${FILE}`, { schema: EDITS }))).toMatchObject({
    edits: [{ path: "auth.py", search: "    return eval(text)", replace: "    return ast.literal_eval(text)" }],
  });
  expect(ask('review\n<file path="auth.py">\n\n</file>')).toBe("I was given no file.");
});

it("approves an edit that fits the file that it is shown, and no other", () => {
  const schema = { approved: {}, reason: {} };
  const edit = (search: string, replace: string) =>
    `Review this edit.\n${FILE}\n<edit path="auth.py">\n<search>\n${search}\n</search>\n<replace>\n${replace}\n</replace>\n</edit>`;
  const approved = (prompt: string): unknown => JSON.parse(ask(prompt, { schema })).approved;
  expect(approved(edit("return eval(text)", "return int(text)"))).toBe(true);
  expect(approved(edit("return 7", "return int(text)"))).toBe(false);
  expect(approved(edit("return eval(text)", "return eval(text) + 1"))).toBe(false);
  expect(approved("Review this edit: it is fine.")).toBe(false);
  expect(approved(edit("return eval(text)", "return int(text)").replace(FILE, ""))).toBe(false);
});

it("answers as a member of a team again only if it is asked again", () => {
  const file = '<file path="client.py">\nfor attempt in range(3):\n    post(body)\n</file>';
  const system = "You look for facts.";
  expect(ask(`Is it safe?\n${file}\nEnd with EVIDENCE and CONFIDENCE.`, { system })).toMatch(
    /^It is not safe.*\nEVIDENCE: client\.py:1\nCONFIDENCE: 0\.7$/,
  );
  expect(ask(`Is it safe?\n${file}\nYour partners said:\n- lead: yes`, { system })).toBe("");
  expect(ask(`Is it safe?\n${file}\nYour partners said:\n- lead: yes\nAnswer again.`, { system })).toMatch(
    /^It is not/,
  );
  expect(ask("Is it safe?", { system })).toMatch(/^I was given no file/);
});

it("judges answers by a rubric, and says if it has none", () => {
  const answers = "- lead: It is safe. EVIDENCE: client.py:1\n- tester: It is safe.";
  expect(ask(`Judge these answers.\n${answers}`)).toBe("untrusted: I was given no rubric.");
  expect(ask(`Judge these answers.\n# Rubric\nThey agree.\n# Answers\n${answers}`)).toMatch(/^trusted/);
  expect(ask("Judge these answers.\n# Rubric\nThey agree.\n# Answers\n- lead:\n- tester:")).toMatch(/^untrusted/);
  expect(
    ask(`Judge these answers.\n# Rubric\nThey agree.\n# Answers\n${answers.replace("safe.", "not safe.")}`),
  ).toMatch(/^partial/);
});

it("plans a step a line where it is told to, with the functions that it is offered", () => {
  const asked = (functions: string, goal: string) =>
    ask(`Write a plan.\nWrite one task a line, as JSON.\n${functions}\n# Goal\n${goal}\n# Before\nthe Shard`);
  const both = "- search(query): finds\n- math(expression): computes";
  expect(
    asked(both, "Tokyo Tower or Eiffel Tower?")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    { id: "t1", tool: "search", input: { query: "height of the Tokyo Tower in metres" } },
    { id: "t2", tool: "search", input: { query: "height of the Eiffel Tower in metres" } },
    { id: "t3", tool: "math", input: { expression: "{{t1.output}} - {{t2.output}}" } },
  ]);
  expect(asked(both, "the Moon?")).toBe("No function that I was offered finds this.");
  expect(asked("", "Tokyo Tower?")).toBe("I was offered no functions.");
});

it("plans the functions that it is offered, and none else", () => {
  const question = "How much taller is the Tokyo Tower than the Eiffel Tower?";
  expect(ask(`Write a plan.\n${question}`)).toBe("I was offered no functions.");
  expect(ask(`Write a plan.\n- search(query): finds\n- math(expression): computes\n${question}`)).toBe(
    '1. search("height of the Tokyo Tower in metres")\n2. search("height of the Eiffel Tower in metres")\n3. math("$1 - $2")\n4. join()',
  );
});

it("does a step whose function is named, and asks back about one without a name", () => {
  expect(ask("math(333 - 330)")).toBe("3");
  expect(ask('search("height of the Shard")')).toBe("310");
  expect(ask("333 - 330")).toBe("What am I to do with 333 - 330?");
});

it("joins the results that it is given", () => {
  const joining = "Answer the question from the results of the steps.\n# Results\n";
  expect(ask(`${joining}1. search("A") = 333\n2. math("333 - 330") = 3`)).toBe(
    "ANSWER: The first is 3 m taller than the second.",
  );
  expect(ask(joining)).toMatch(/^REPLAN: I was given no results/);
  expect(ask(`${joining}1. math("x") = What am I to do with x?`)).toMatch(/^REPLAN: /);
});

it("has no opinion about a change that it was not shown", () => {
  const task = "Look for what an attacker could do with it. Answer with JSON.";
  expect(ask(task)).toContain("I was shown no change.");
  expect(ask(`${task}\nThe change: Retry, at most three times.`)).toContain('"accept"');
  expect(ask(`${task}\nThe change: Retry for ever.`)).toContain('"reject"');
});

it.each([
  ["333 - 330", 3],
  ["max(333, 330) > 310", true],
  ["2 * (3 + 4)", 14],
  ["the difference", null],
  ["", null],
])("computes %j", (expression, value) => expect(valueOf(expression)).toBe(value));

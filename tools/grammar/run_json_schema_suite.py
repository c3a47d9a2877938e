"""Runs a checkout of json-schema-org/JSON-Schema-Test-Suite with Octavo's grammar engine, and writes
docs/reference/json-schema-suite.md.

    python run_json_schema_suite.py GRAMMAR_TOOL VOCABULARY.json TESTS_FOLDER OUTPUT.md

TESTS_FOLDER contains draft2020-12 and draft7. An invalid instance that is accepted is an error. There must be none.
"""

import collections
import glob
import json
import os
import subprocess
import sys

DRAFTS = ("draft2020-12", "draft7")
HEAD = """# JSON Schema, keyword by keyword

Written by `tools/grammar/run_json_schema_suite.py` from the JSON Schema test suite, one row per file of the suite.

- *refused*: number of schemas that get an error with keyword and path, or that no text matches, of all schemas in the file.
- *accepted*: number of valid instances, as compact JSON, that the grammar accepts.
- *outside*: number of valid instances that the grammar does not accept, because of the spelling of a value, or because only another branch evaluates a member or item.
- *rejected*: number of invalid instances that the grammar rejects.
- *wrong*: number of invalid instances that the grammar accepts.

| file | 2020-12 refused | accepted | outside | rejected | wrong | draft-7 refused | accepted | outside | rejected | wrong |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main():
    tool, vocabulary, folder, output = sys.argv[1:5]
    process = subprocess.Popen([tool, vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(**request):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    counts = {draft: collections.defaultdict(collections.Counter) for draft in DRAFTS}
    for draft in DRAFTS:
        root = os.path.join(folder, draft)
        for path in sorted(glob.glob(os.path.join(root, "*.json")) + glob.glob(os.path.join(root, "optional/format/*.json"))):
            name = os.path.relpath(path, root)[:-5].replace("optional/", "")
            for group in json.load(open(path)):
                schema = group["schema"]
                if draft == "draft7" and isinstance(schema, dict):
                    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
                answer = ask(op="new", kind="json_schema", text=json.dumps(schema, ensure_ascii=False), whitespace=0, strict=False)
                tally = collections.Counter(schemas=1, refused="error" in answer)
                for test in group["tests"] if "ok" in answer else []:
                    text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
                    reads = ask(op="matches", text=text)["ok"]
                    tally[test["valid"], reads] += 1
                    if reads and not test["valid"]:
                        print("WRONG", draft, name, group["description"], test["description"], text)
                counts[draft][name] += tally
                counts[draft]["all"] += tally

    names = sorted({name for draft in DRAFTS for name in counts[draft]} - {"all"}, key=lambda n: ("/" in n, n.lower()))
    with open(output, "w") as file:
        file.write(HEAD)
        for name in [*names, "all"]:
            row = [name]
            for draft in DRAFTS:
                c = counts[draft].get(name)
                row += [f"{c['refused']} of {c['schemas']}", *(c[key] for key in ((True, True), (True, False), (False, False), (False, True)))] if c else [""] * 5
            file.write("| " + " | ".join(map(str, row)) + " |\n")
    print({draft: counts[draft]["all"] for draft in DRAFTS})


main()

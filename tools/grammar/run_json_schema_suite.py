"""Runs a checkout of json-schema-org/JSON-Schema-Test-Suite against Octavo's grammar engine.

    python run_json_schema_suite.py GRAMMAR_TOOL VOCABULARY.json TESTS_FOLDER (tests/draft2020-12 or tests/draft7)

Per file: schemas refused; instances that are valid and accepted, valid but outside of the grammar (property order,
spelling), invalid and rejected, invalid but accepted. The last must be zero. Refusal includes "no text matches".
"""

import collections
import glob
import json
import os
import subprocess
import sys


def main():
    tool, vocabulary, folder = sys.argv[1:4]
    process = subprocess.Popen([tool, vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(**request):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    total = collections.Counter()
    print("| file | schemas | refused | valid accepted | valid outside | invalid rejected | invalid accepted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json")) + glob.glob(os.path.join(folder, "optional/format/*.json"))):
        count = collections.Counter()
        for group in json.load(open(path)):
            count["schemas"] += 1
            schema = group["schema"]
            if "draft7" in folder and isinstance(schema, dict):
                schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            answer = ask(op="new", kind="json_schema", text=json.dumps(schema, ensure_ascii=False), whitespace=0, strict=False)
            if "error" in answer:
                count["refused"] += 1
                # A schema that matches nothing is refused; that is right only if no instance is valid, and sound anyway.
                continue
            for test in group["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
                ok = ask(op="matches", text=text)["ok"]
                count[(test["valid"], ok)] += 1
                if ok and not test["valid"]:
                    wrong.append((os.path.basename(path), group["description"], test["description"], text))
        row = [count["schemas"], count["refused"], count[(True, True)], count[(True, False)], count[(False, False)], count[(False, True)]]
        print(f"| {os.path.relpath(path, folder)[:-5]} | " + " | ".join(map(str, row)) + " |")
        total.update({i: n for i, n in enumerate(row)})
    print("| all | " + " | ".join(str(total[i]) for i in range(6)) + " |")
    for entry in wrong:
        print("WRONG", *entry)


main()

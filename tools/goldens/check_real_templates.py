"""Renders every *.jinja of a directory with transformers and with Octavo, and compares the results.

    python tools/goldens/check_real_templates.py TEMPLATE_DIR build/dev/render_chat [-v]

Templates of real models belong to their makers, so the repository contains none: give the directory of your own
copies. Both must render the same text, or both must refuse.
"""

import difflib
import json
import os
import pathlib
import subprocess
import sys

import transformers_render
from conversations import CONVERSATIONS, NOW, SPECIAL_TOKENS


def octavo_render(binary, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    environment = {**os.environ, "TZ": "UTC"}
    run = subprocess.run([binary], input=lines, capture_output=True, text=True, env=environment, check=True)
    return [json.loads(line) for line in run.stdout.split("\n") if line]


def main():
    directory, binary, verbose = pathlib.Path(sys.argv[1]), sys.argv[2], "-v" in sys.argv
    same = refused = different = 0
    for path in sorted(directory.glob("*.jinja")):
        source = path.read_text()
        cases = [{"template": source, "special_tokens": SPECIAL_TOKENS, "now": NOW, **c} for c in CONVERSATIONS]
        for at, (case, ours) in enumerate(zip(cases, octavo_render(binary, cases), strict=True)):
            theirs = transformers_render.render(case)
            if "text" in theirs and theirs == ours:
                same += 1
            elif "error" in theirs and "error" in ours:
                refused += 1
            else:
                different += 1
                print(f"{path.name} [{at}]: differs")
                if verbose:
                    show = lambda r: r.get("text", f"ERROR {r.get('error')}").splitlines()
                    print("\n".join(difflib.unified_diff(show(theirs), show(ours), "transformers", "octavo", n=1, lineterm="")))
    print(f"{same} equal, {refused} refused by both, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

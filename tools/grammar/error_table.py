"""Writes docs/reference/grammar-errors.md: inputs that Octavo's grammar engine refuses, with their errors.

    python error_table.py GRAMMAR_TOOL VOCABULARY.json OUTPUT.md

If an input is accepted, it is reported, and the exit code is 1.
"""

import json
import subprocess
import sys

EBNF = ["", "root = \"a\"", "root ::= other", "root ::= \"a\"\nroot ::= \"b\"", "root ::= \"a", "root ::= \"\\q\"", "root ::= \"\\u12\"",
        "root ::= \"\\uD800\"", "root ::= [z-a]", "root ::= []", "root ::= [a", "root ::= (\"a\"", "root ::= \"a\")", "root ::= *",
        "root ::= \"a\"**", "root ::= \"a\"{}", "root ::= \"a\"{3,2}", "root ::= \"a\"{9999999999}", "root ::= <a", "root ::= <[x]>",
        "root ::= <unknown>", "root ::= <[99999999]>", "root ::= \"a\" & \"b\"", "root ::= \"a\" root"]
LARK = ["start: a", "start: \"a\"\nstart: \"b\"", "A: \"a\"", "start \"a\"", "start: (\"a\"", "start: *", "start: \"a\"+*", "start: \"a\"~", "start: \"a\"~3..2",
        "start: \"a", "start: /a", "start: /a/x", "start: /(?=a)/", "start: \"é\"i", "start: \"z\"..\"a\"", "start: \"a\"..b", "start: A\nA: b\nb: \"x\"",
        "start: A\nA: \"(\" A", "start: A\nA: <tool>", "start: t{\"a\"}\nt{x}: x", "start[lazy]: \"a\"", "start.x: \"a\"", "%declare A\nstart: A",
        "%import python.NAME\nstart: NAME", "%import common.NAME\nstart: NAME", "%import common\nstart: INT", "%import common.INT -> int\nstart: int",
        "start: \"a\" ->", "start: \"a\" ) \"b\"", "start: %json {\"type\": \"nothing\"}", "start: %json {\""]
REGEX = ["a)", "(a", "[a", "[]", "[z-a]", "[\\d-z]", "*a", "a**", "a++", "a{3,2}", "a{9999999999}", "^*", "a$b", "\\1", "(?=a)", "(?<n", "(?<a b>c)", "(?#x)", "(?m)a",
         "a(?i)b", "(?i)é", "(?i)\\p{L}", "\\q", "\\", "\\012", "\\x1", "\\u12", "\\u{}", "\\uD800", "\\uD800\\u0041", "\\p", "\\p{Greek}"]
TAGS = ["[]", "{}", "{", {"structures": [], "triggers": []}, {"structures": [{"begin": "<a>", "end": "x"}], "triggers": ["<a"]},
        {"structures": [{"begin": "<a>", "schema": {}, "end": "x"}], "triggers": ["<b"]}, {"format": {"type": "unheard"}}, {"format": {}},
        {"format": {"type": "regex", "pattern": "a", "flags": "i"}}, {"format": {"type": "const_string", "value": 1}},
        {"format": {"type": "sequence", "elements": []}}, {"format": {"type": "tag", "begin": "a", "end": "b"}},
        {"format": {"type": "tag", "begin": {}, "content": {"type": "any_text"}, "end": "b"}},
        {"format": {"type": "triggered_tags", "triggers": ["<"], "tags": []}},
        {"format": {"type": "triggered_tags", "triggers": ["<"], "tags": [{"begin": "[", "content": {"type": "any_text"}, "end": "]"}]}},
        {"format": {"type": "json_schema", "json_schema": {"type": 1}}}]
SCHEMAS = ["", "{\"type\": \"string\",}", "{'type': 'string'}", "{\"a\": 1, \"a\": 2}", "\"\\q\"", "5", {"type": "text"}, {"maxLength": -1}, {"minimum": "1"},
           {"required": "a"}, {"properties": []}, {"anyOf": []}, {"items": 5}, {"$ref": "#/$defs/x"}, {"$ref": "other.json"}, {"$ref": "#"},
           {"enum": []}, {"type": "string", "minLength": 5, "maxLength": 2}, {"type": "object", "required": ["a"], "additionalProperties": False},
           {"type": "string", "enum": [1]}, {"pattern": "a("}, {"type": "string", "not": {"format": "date"}}, {"type": "number", "multipleOf": 123456},
           {"allOf": [{"unevaluatedProperties": False}]}, {"not": {}}, {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
           {"type": "str"}, {"type": ["string", None]}, {"properties": {"a": {"type": "integer", "required": True}}}, {"dependentRequired": {"a": "b"}},
           {"$ref": "/$defs/A", "$defs": {"A": {}}}, {"$ref": "#/definitions/A", "$defs": {"A": {}}}, "\ufeff{}",
           {"allOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"properties": {"b": {}}, "required": ["b"], "type": "object"}]},
           {"name": "person", "schema": {"type": "object"}, "strict": True}, {"name": "find", "parameters": {"type": "object"}}]
PARTS = [("EBNF (GBNF)", "ebnf", EBNF), ("Lark", "ebnf", LARK), ("Regular expressions", "regex", REGEX), ("Structural tags", "structural_tag", TAGS),
         ("JSON Schema", "json_schema", SCHEMAS), ("Choices", "choice", ["{}", "[]", "[1]"])]
HEAD = """# Errors of grammars

Written by `tools/grammar/error_table.py`. Each error names the position, what is wrong or expected there, and what to do. Lines and columns begin at 1; a column is one character. A position in a JSON document is a JSON pointer.
"""


def cell(text):
    return "`" + text.replace("\n", " ⏎ ").replace("|", "\\|") + "`" if text else "(empty)"


def main():
    tool, vocabulary, output = sys.argv[1:4]
    process = subprocess.Popen([tool, vocabulary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    accepted = 0
    with open(output, "w") as file:
        file.write(HEAD)
        for title, kind, texts in PARTS:
            file.write(f"\n## {title}\n\n| input | error |\n| --- | --- |\n")
            for text in texts:
                text = text if isinstance(text, str) else json.dumps(text)
                request = {"op": "new", "kind": kind, "text": text, "whitespace": 1, "strict": False}
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                error = json.loads(process.stdout.readline()).get("error")
                if error is None:
                    accepted += 1
                    print("accepted:", kind, text)
                else:
                    file.write(f"| {cell(text)} | {error.replace('|', chr(92) + '|').replace('<', '&lt;')} |\n")
    sys.exit(accepted > 0)


main()

"""Measures the quality of answers under a grammar, with two tasks: extraction from short texts, and numbers of bounded length.

    python extraction.py http://localhost:8000 [--answers 12] [--retries 3]

Extraction: the model extracts the same four fields from each text. `valid` counts answers that are JSON of the schema, and `right` is
the fraction of fields that have the value in the text. The rows are greedy decoding with a grammar, greedy decoding without a grammar,
and no grammar with retries at temperature 0.7 until an answer is valid. Numbers: prints, for each schema, how many answers max_tokens
cut, which should be none.
"""

import argparse
import json
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import jsonschema

FIELDS = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                           "city": {"type": "string", "maxLength": 40}, "member": {"type": "boolean"}},
          "required": ["name", "age", "city", "member"], "additionalProperties": False}
PEOPLE = [("Ann Lee", 34, "Paris", True), ("Omar Haddad", 51, "Cairo", False), ("Mira Novak", 29, "Prague", True), ("Jon Berg", 42, "Oslo", False),
          ("Lucia Rossi", 67, "Rome", True), ("Ken Sato", 18, "Tokyo", True), ("Ada Okafor", 45, "Lagos", False), ("Tom Baker", 73, "London", True),
          ("Ines Silva", 38, "Lisbon", False), ("Max Weber", 56, "Berlin", True), ("Nina Petrova", 24, "Sofia", False), ("Leo Martin", 31, "Lyon", True),
          ("Sara Cohen", 60, "Haifa", True), ("Ravi Patel", 27, "Mumbai", False), ("Zoe Clark", 19, "Sydney", True), ("Paul Meyer", 83, "Vienna", False),
          ("Elif Demir", 36, "Izmir", True), ("Juan Perez", 48, "Madrid", False), ("Kim Larsen", 22, "Aarhus", True), ("Olga Ivanova", 55, "Riga", False),
          ("Bob Stone", 64, "Boston", True), ("Mei Chen", 33, "Taipei", False), ("Hugo Lind", 41, "Malmo", True), ("Eva Kovacs", 70, "Budapest", False)]
SHAPES = ["{n} is {a} years old, lives in {c} and {m}.", "A person from {c}: {n}, aged {a}, who {m}.", "{n} ({a}) moved to {c} last year. {n} {m}."]
NUMBERS = [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
           {"type": "number", "minimum": -1, "maximum": 1}, {"type": "number", "minimum": -0.5, "maximum": 0}, {"type": "number", "multipleOf": 0.25},
           {"type": "integer", "multipleOf": 7}, {"type": "integer", "minimum": 18446744073709551616, "maximum": 18446744073709551999}]


def asked(base, text, tokens, schema=None, temperature=0.0, seed=0):
    """Returns (text of the answer, whether max_tokens cut the answer)."""
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "temperature": temperature, "seed": seed}
    if schema:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    request = urllib.request.Request(base + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        choice = json.load(reply)["choices"][0]
    return choice["message"]["content"] or "", choice["finish_reason"] == "length"


def value_of(text):
    """Returns the value of the answer, or of the JSON object in the answer; None if the answer has no valid object."""
    for part in [text, *re.findall(r"\{.*?\}", text, re.DOTALL)]:
        try:
            value = json.loads(part)
            jsonschema.validate(value, FIELDS)
            return value
        except (ValueError, jsonschema.ValidationError):
            pass
    return None


def extraction(base, retries):
    prompts = []
    for i, (name, age, city, member) in enumerate(PEOPLE):
        text = SHAPES[i % len(SHAPES)].format(n=name, a=age, c=city, m="is a member of the club" if member else "is not a member of the club")
        prompts.append(f'{text}\n\nWrite this as a JSON object with the fields "name" (string), "age" (integer), "city" (string) and "member" '
                       "(boolean: whether the person is a member of the club). Answer with the JSON object alone.")

    def with_tries(prompt):
        for attempt in range(retries + 1):
            value = value_of(asked(base, prompt, 80, None, 0.7 if attempt else 0.0, attempt)[0])
            if value is not None:
                return value
        return None

    ways = {"grammar": lambda prompt: value_of(asked(base, prompt, 80, FIELDS)[0]), "no grammar": lambda prompt: value_of(asked(base, prompt, 80)[0]),
            f"no grammar, {retries} more tries": with_tries}
    print(f"| {len(prompts)} texts | valid | fields right |\n| --- | --- | --- |")
    for name, way in ways.items():
        with ThreadPoolExecutor(8) as pool:
            values = list(pool.map(way, prompts))
        right = sum(value[field] == wanted for value, person in zip(values, PEOPLE) if value
                    for field, wanted in zip(("name", "age", "city", "member"), person))
        print(f"| {name} | {sum(value is not None for value in values)} | {right} of {4 * len(prompts)} |")


def numbers(base, answers):
    print(f"\n| schema of a number | cut at 40 tokens, of {answers} |\n| --- | --- |")
    for schema in NUMBERS:
        whole = {"type": "object", "properties": {"score": schema}, "required": ["score"], "additionalProperties": False}
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda seed: asked(base, "Give a score as a JSON object with the field \"score\".", 40, whole, 1.0, seed), range(answers)))
        print(f"| `{json.dumps(schema)}` | {sum(cut for _, cut in replies)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--answers", type=int, default=12)
    parser.add_argument("--retries", type=int, default=3)
    options = parser.parse_args()
    extraction(options.server, options.retries)
    numbers(options.server, options.answers)


if __name__ == "__main__":
    main()

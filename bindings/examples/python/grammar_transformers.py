"""transformers' generate() under a JSON Schema:  python grammar_transformers.py MODEL "Mira is 31." """

import json
import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

from octavo.grammar import GrammarLogitsProcessor, Vocabulary, compile_json_schema

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
          "required": ["name", "age"], "additionalProperties": False}

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
vocabulary = Vocabulary.from_tokenizer(tokenizer, size=model.config.vocab_size)
grammar = compile_json_schema(SCHEMA, vocabulary)

inputs = tokenizer(f"Write the person as JSON. {sys.argv[2]} JSON: ", return_tensors="pt")
output = model.generate(**inputs, max_new_tokens=80, do_sample=False, logits_processor=[GrammarLogitsProcessor(grammar)])
print(json.dumps(json.loads(tokenizer.decode(output[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True))))

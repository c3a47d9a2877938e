"""Measures the processor time of the grammar engine for hostile inputs. Every input must be refused or compiled within
250 ms.

    python bad_inputs.py GRAMMAR_TOOL VOCABULARY.json [--only TEXT] [--over MS]

Prints a table with the slowest input of each row, and names all inputs that take longer than `--over` ms.
"""

import argparse
import json
import os
import pathlib
import random

from engines import Octavo

DEPTHS = [10, 60, 99, 150, 1000, 100_000, 1_000_000]


def nested(kind, opening, middle, closing):
    return [(kind, opening * n + middle + closing * n) for n in DEPTHS if n * len(opening + closing) < 2_000_000]


def schema(value):
    return "json", json.dumps(value)


def names(count):
    return [f"n{i}" for i in range(count)]


def random_words(count, rng):
    return ["".join(rng.choice("abcdefghij") for _ in range(rng.randint(3, 12))) for _ in range(count)]


def cases(rng):
    yield "regex groups 10 to 1e6 deep", nested("regex", "(", "a", ")") + nested("regex", "(a|", "b", ")*")
    yield "regex repetitions in one another", nested("regex", "(x(?:y", "b", "){2})?") + nested("regex", "(", "a", "){2,3}")
    yield "EBNF groups 10 to 1e6 deep", [(k, "root ::= " + t) for k, t in nested("ebnf", "(", '"a"', ")") + nested("ebnf", '("x" | ', '"a"', ")*")]
    yield "schemas 10 to 1e6 deep", [
        case for opening, closing in [('{"items":', "}"), ('{"properties":{"a":', "}}"), ('{"anyOf":[{"type":"null"},', "]}"), ('{"allOf":[', "]}"),
                                      ('{"not":', "}"), ('{"oneOf":[{"const":1},', "]}"), ('{"if":', ',"then":false}'), ('{"const":[', "]}")]
        for case in nested("json", opening, "1" if "const" in opening and "oneOf" not in opening else "{}", closing)]
    yield "enum of 1e5", [schema({"enum": list(range(100_000))}), schema({"enum": random_words(100_000, rng)}),
                          schema({"enum": [[i, str(i)] for i in range(100_000)]}), schema({"enum": [{"a": i} for i in range(100_000)]})]
    yield "enum of 1e5 under other keywords", [schema({"enum": random_words(100_000, rng), "pattern": "^[a-e]"}), schema({"enum": list(range(100_000)), "minimum": 500}),
                                               schema({"not": {"enum": random_words(100_000, rng)}, "type": "string"})]
    yield "choice of 1e5", [("choice", json.dumps(random_words(100_000, rng)))]
    yield "1e5 alternatives", [("regex", "|".join(random_words(100_000, rng))), ("ebnf", "root ::= " + " | ".join(f'"{w}"' for w in random_words(100_000, rng))),
                               schema({"anyOf": [{"const": w} for w in random_words(100_000, rng)]}), schema({"oneOf": [{"type": "object", "properties": {n: {}}} for n in names(5000)]}),
                               schema({"anyOf": [{"type": "object", "properties": {n: {"type": "string"}}, "required": [n]} for n in names(512)]})]
    yield "{m,n} huge", [("regex", p) for p in ["a{1000000000}", "(a{1000000}){1000000}", "((a?){1000000}){1000000}", "(a*){5,1000000}", "(|a){9}{3}", "(a|b){999}c", "[a-z]{1,100000}x",
                                               "((a{1,1000}b?){1,1000}c?){1,1000}", "(a{0,40}b{0,40}){0,40}", "a{4294967295}", "a{99999999999999999999}"]]
    yield "{m,n} inverted, or after nothing", [("regex", p) for p in ["a{5,3}", "*", "a|*", "(+)", "{2}", "a**", "?"]] + [("ebnf", 'root ::= "a"{5,3}'), ("ebnf", "root ::= *")]
    yield "lengths and counts huge, inverted", [schema(s) for s in [
        {"type": "string", "minLength": 1_000_000, "maxLength": 2_000_000_000}, {"type": "string", "pattern": "^a*$", "maxLength": 100_000_000}, {"type": "string", "pattern": "^(a|b)*c$", "maxLength": 4000},
        {"type": "string", "minLength": 9, "maxLength": 3}, {"type": "array", "items": {}, "minItems": 100_000, "maxItems": 999_999_999}, {"type": "array", "minItems": 3, "maxItems": 1},
        {"type": "array", "contains": {"const": 1}, "minItems": 200, "maxItems": 100_000}, {"type": "object", "minProperties": 1000, "maxProperties": 100_000}, {"type": "object", "minProperties": 5, "maxProperties": 2},
        {"type": "string", "format": "email", "minLength": 1000, "maxLength": 4000}]] + [("json", '{"type":"integer","minimum":1e999999}')]
    yield "numbers", [schema(s) for s in [{"type": "number", "minimum": -1.7976931348623157e308, "maximum": 1.7976931348623157e308}, {"type": "integer", "multipleOf": 1999}, {"type": "number", "multipleOf": 0.001},
                                          {"type": "integer", "minimum": 3, "maximum": 10**300, "multipleOf": 1997}, {"type": "number", "multipleOf": 1e-300}, {"type": "integer", "minimum": 10, "maximum": 1},
                                          {"allOf": [{"type": "integer", "multipleOf": m} for m in (1999, 1997, 1993)]}]]
    yield "recursive $ref", [schema(s) for s in [
        {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, {"not": {"$ref": "#"}}, {"$defs": {n: {"$ref": f"#/$defs/n{(i + 1) % 2000}"} for i, n in enumerate(names(2000))}, "$ref": "#/$defs/n0"},
        {"$defs": {n: {"type": "object", "properties": {"x": {"$ref": f"#/$defs/n{i * 7 % 3000}"}, "y": {"$ref": f"#/$defs/n{i * 11 % 3000}"}}} for i, n in enumerate(names(3000))}, "anyOf": [{"$ref": f"#/$defs/{n}"} for n in names(3000)]},
        {"$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/b"}}}, "b": {"properties": {"x": {"$ref": "#/$defs/a"}}}}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"not": {"$ref": "#/$defs/a"}}]}]]
    yield "chains of 3000 rules", [("ebnf", "root ::= r0\n" + "\n".join(f"r{i} ::= r{i + 1}" for i in range(3000)) + '\nr3000 ::= "x"'),
                                   ("ebnf", "root ::= r0\n" + "\n".join(f'r{i} ::= r{i + 1} "a" | r{i + 1}' for i in range(3000)) + '\nr3000 ::= r0 "d" | "e"')]
    yield "combinations", [schema(s) for s in [
        {"type": "object", "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(20)]}, {"type": "object", "allOf": [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(8)]},
        {"allOf": [{"not": {"required": [f"a{i}", f"b{i}"]}} for i in range(9)]}, {"oneOf": [{"properties": {n: {"type": "integer"}}} for n in names(60)]}, {"type": "object", "dependentRequired": {n: [n + "x"] for n in names(30)}},
        {"patternProperties": {f"^{c}.*{c}$": {"type": "string"} for c in "abcde"}}, {"propertyNames": {"pattern": "a.{10}b"}, "required": names(50)}, {"properties": {n: {} for n in names(5000)}, "minProperties": 2500},
        {"properties": {n: {"type": "string", "maxLength": i + 1} for i, n in enumerate(names(10_000))}, "required": names(10_000)}, {"properties": {n: {"enum": [n, 1]} for n in names(2000)}, "maxProperties": 1000}]]
    yield "regexes that grow as automata", [("regex", p) for p in ["(a|b)*a(a|b){30}", "(a|b)*a(a|b){14}", "(.*a){40}", "(.*){50}", ".*" + "(.*x.*|y)" * 20, "\\p{L}{1,40}(\\p{Nd}|\\p{L}){1,40}", "(\\p{L}*\\p{N}?){30}",
                                                                  ".*(" + "|".join(random_words(3000, rng)) + ").*", "(" + "|".join(f"{w}.*{w}" for w in random_words(200, rng)) + ")", "(?:" + "a?" * 2000 + ")" + "a" * 2000]]
    yield "patterns that grow as automata", [schema({"type": "string", "pattern": p}) for p in [
        "(a|b)*a(a|b){12}", "a.{12}b", "^(.*a){12}$", "." * 100, ".*".join("abcdefghij" * 4), "^(\\p{L}|\\p{N}){1,400}$", "x.{8}y.{8}z", "(" + "|".join(random_words(3000, rng)) + ")", "^(?:" + "a?" * 500 + ")" + "a" * 500 + "$",
        "[^a]{400}", "(?:" + ".?" * 100 + ")x"]]
    yield "several patterns at once", [schema({"type": "string", "allOf": [{"pattern": p} for p in ps]}) for ps in [
        ["a.{6}b", "c.{6}d"], [f"{c}.*{c}" for c in "abcdefghij"], ["^.{0,900}$", "a.{5}b"], [f"^(.{{{n}}})*$" for n in (7, 11, 13, 17)]]] + [schema({"type": "string", "not": {"pattern": "a.{10}b"}}), schema({"type": "string", "pattern": "^(a|b)*$", "minLength": 700, "maxLength": 900})]
    yield "many that are hard each", [schema({"properties": {f"n{i}": make(i) for i in range(count)}}) for count, make in [
        (2000, lambda i: {"type": "integer", "minimum": -i, "maximum": i * 977}), (500, lambda i: {"type": "number", "minimum": -(10**99) // 7 - i, "maximum": 10**99 // 3}),
        (100, lambda i: {"type": "integer", "multipleOf": 1900 + i}), (500, lambda i: {"type": "string", "format": "email", "maxLength": 1000 - i}), (500, lambda i: {"type": "string", "format": "ipv6"}),
        (500, lambda i: {"type": "string", "pattern": f"x{i}.{{7}}y"}), (500, lambda i: {"type": "string", "pattern": f"^a{i}(b|c)*$", "maxLength": 100}), (1000, lambda i: {"type": "string", "not": {"const": f"x{i}"}}),
        (300, lambda i: {"patternProperties": {f"^a{i}": {}, "b$": {}, "c.*d": {}}}), (500, lambda i: {"type": "array", "contains": {"const": i}, "minItems": 100, "maxItems": 190}),
        (500, lambda i: {"type": "array", "items": {"enum": [i, 1, 2, 3, 4, 5, 6, "a"]}, "uniqueItems": True}), (200, lambda i: {"properties": {n: {} for n in names(60)}, "minProperties": 30}),
        (4, lambda i: {"enum": random_words(30_000, rng)}), (30, lambda i: {"oneOf": [{"properties": {"kind": {"const": n}}, "required": ["kind"]} for n in names(200)]})]]
    yield "classes of many characters", [("regex", t) for t in ["[\\p{L}a]" * 2000, "\\p{L}" * 40_000, "\\p{L}" * 250, "".join(f"[\\p{{L}}{c}]" for c in "0123456789!#%&,:;<=>@_`~ ") * 12,
                                                               "[" + "\\P{Lu}" * 30_000 + "]"]] + [schema({"properties": {f"n{i}": {"type": "string", "pattern": "^[\\p{L}" + str(i) + "]*$", "maxLength": 90} for i in range(400)}})]
    yield "names of properties", [schema(s) for s in [
        {"properties": {"a" * i: {} for i in range(1, 1900)}}, {"properties": {"a" * i: {} for i in range(1, 1900)}, "required": ["a" * i for i in range(1, 1900)]}, {"properties": {n: {} for n in names(4000)}, "required": names(4000)},
        {"properties": {"k" * 900_000: {"properties": {n: {"type": "string", "maxLength": i} for i, n in enumerate(names(20_000))}}}}, {"type": "object", "properties": {n: {} for n in names(50)}, "dependentRequired": {n: [n + "0"] for n in names(5)}},
        {"type": "object", "properties": {n: {} for n in names(50)}, "dependentRequired": {n: ["n40"] for n in names(8)}}, {"properties": {w: {} for w in random_words(5000, rng)}, "minProperties": 2, "maxProperties": 5},
        {"properties": {f"p{i}": {"type": "object", "properties": {w: {} for w in random_words(60, rng)}, "minProperties": 20 + i} for i in range(30)}}]]
    yield "left recursion, ambiguity", [("ebnf", t) for t in ['root ::= root root root | "a" | ""', "root ::= root", 'root ::= a\na ::= b\nb ::= a "x"', 'root ::= root root | root "a" root | "b"',
                                                                 "\n".join(["root ::= " + " ".join(["r"] * 200), 'r ::= r r | "a" | ""'])]]
    yield "undefined, useless, empty", [("ebnf", t) for t in ["root ::= x", 'root ::= "a"\nroot ::= "b"', 'root ::= "a"\nx ::= x', "", "root ::=", "\n".join(f'r{i} ::= "a"' for i in range(60_000))]] + [
        schema(False), schema({"not": {}}), schema({"type": "string", "enum": [1]}), schema({"minLength": "x"}), schema({"unknownKeyword": 1}), ("json", "{"), ("json", ""), ("regex", "[b-a]"), ("regex", "[^\\x00-\\U0010ffff]")]
    yield "2 MB of text", [("regex", "a" * 2_000_000), ("regex", "[" + "ab" * 900_000 + "]"), ("ebnf", 'root ::= "' + "a" * 2_000_000 + '"'), ("ebnf", "root ::= " + '"a" ' * 500_000), schema({"const": "a" * 2_000_000}),
                           schema({"description": "a" * 2_000_000}), schema({"enum": [["a"] * 400_000]}), ("json", "[" + "1," * 900_000 + "1]"), schema({"required": names(200_000)}), schema({"properties": {n: {} for n in names(130_000)}})]


def resident(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def processor_ms(process):
    """Returns the processor time of the process, so that other programs on the machine have little effect. The
    resolution is 10 ms."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("vocabulary")
    parser.add_argument("--only", default="")
    parser.add_argument("--over", type=float, default=250, help="name the inputs that take longer, in ms")
    options = parser.parse_args()
    rng, engine = random.Random(1), Octavo(options.tool, options.vocabulary)
    before = resident(engine.process)
    print("| input | cases | refused | slowest, ms | which was |\n| --- | --- | --- | --- | --- |")
    for name, inputs in cases(rng):
        if options.only not in name:
            continue
        times, refused = [], 0
        for kind, text in inputs:
            begin = processor_ms(engine.process)
            answer = engine.ask(op="new", kind={"json": "json_schema"}.get(kind, kind), text=text, whitespace=0)
            refused += "error" in answer
            times.append((processor_ms(engine.process) - begin, text[:60], answer.get("error", "compiled")[:80]))
        slowest = max(times)
        print(f"| {name} | {len(times)} | {refused} | {slowest[0]:.0f} | {'compiled' if slowest[2] == 'compiled' else 'refused'} |", flush=True)
        for each in sorted(times)[::-1]:
            if each[0] > options.over:
                print("   over:", each, flush=True)
    print(f"resident: {before} MB at first, {resident(engine.process)} MB at the end")


main()

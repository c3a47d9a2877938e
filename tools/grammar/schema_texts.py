"""Valid texts of a JSON Schema: instances in several spellings, and their variants, all judged by a validator."""

import json

import jsonschema
import jsonschema_rs


class Twice(Exception):
    pass


def no_twins(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise Twice
    return dict(pairs)


class Validator:
    """Two validators that share no code. A text with a repeated name in an object counts as invalid."""

    def __init__(self, schema):
        self.first = jsonschema_rs.validator_for(schema, validate_formats=True)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        self.second = kind(schema, format_checker=jsonschema.FormatChecker())  # formats of every draft

    @staticmethod
    def value(text):
        try:
            value = json.loads(text.decode(), object_pairs_hook=no_twins, parse_constant=lambda _: 1 / 0)
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is not a character
            return [value]
        except (ValueError, ZeroDivisionError, RecursionError, Twice):
            return None

    def valid(self, text):
        value = self.value(text)
        return value is not None and self.first.is_valid(value[0])

    def surely(self, text):
        """Returns whether both validators accept the text."""
        return self.valid(text) and self.second.is_valid(self.value(text)[0])

    def perhaps(self, text):
        """Returns whether one of the validators accepts the text."""
        value = self.value(text)
        return value is not None and (self.first.is_valid(value[0]) or self.second.is_valid(value[0]))


def repeats_names(text):
    """Returns whether an object has a repeated name, for which the validators have no result."""
    try:
        json.loads(text.decode(), object_pairs_hook=no_twins)
    except Twice:
        return True
    except ValueError:
        pass
    return False


def subschemas(schema, at_most=3000):
    todo = [schema]
    while todo and at_most:
        at_most -= 1
        part = todo.pop()
        if isinstance(part, dict):
            yield part
        todo += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []


def names_of(schema):
    names = {}
    for part in subschemas(schema):
        for key in ("properties", "required"):
            for name in part.get(key, ()) if isinstance(part.get(key), (dict, list)) else ():
                names[json.dumps(name, ensure_ascii=False)[1:-1].encode()] = None
    return list(names)[:200]


def values_of(schema):
    """Returns texts of values that the schema names."""
    found = {}
    for part in subschemas(schema):
        listed = [*(part["enum"] if isinstance(part.get("enum"), list) else []),
                  *(part["examples"] if isinstance(part.get("examples"), list) else []),
                  *(part[key] for key in ("const", "default", "minimum", "maximum") if key in part)]
        for value in listed:
            found[json.dumps(value, ensure_ascii=False).encode()] = None
    return [text for text in found if len(text) < 200][:24]


def variants(value, schema):
    """Yields the value with one change."""
    yield value
    if isinstance(value, dict):
        for name in value:
            yield {key: part for key, part in value.items() if key != name}
            for other in variants(value[name], schema):
                yield {**value, name: other}
        yield {**value, "extra": 1}
    elif isinstance(value, list):
        yield value[:-1]
        yield value[:1] + value
        for i, part in enumerate(value[:3]):
            for other in variants(part, schema):
                yield value[:i] + [other] + value[i + 1:]
    elif isinstance(value, str):
        yield from (value + "a", value[:-1], "", "x1")
    elif isinstance(value, bool) or value is None:
        yield from (True, False, None)
    elif isinstance(value, int):
        yield from (value + 1, -value, value * 10, 0, value + 0.5)
    elif isinstance(value, float):
        yield from (value / 2, -value, round(value), 0)


def texts_of(schema, values, validator, most=40):
    """Returns (instances as json.dumps writes them, all valid texts)."""
    first, found = [], {}
    for value in values:
        text = json.dumps(value, ensure_ascii=False).encode()
        if validator.surely(text):
            first.append(text)
            for other in [{}, {"separators": (",", ":")}, {"indent": 2}]:
                found[json.dumps(value, ensure_ascii=False, **other).encode()] = None
    for value in values:
        for i, variant in enumerate(variants(value, schema)):
            if len(found) >= most or i > 120:
                break
            text = json.dumps(variant, ensure_ascii=False).encode()
            if validator.surely(text):
                found[text] = None
    return first, list(found)

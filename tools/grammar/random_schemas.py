"""Random JSON Schemas with the keywords that the grammar engine knows, for tests with a validator."""

NAMES = ["a", "b", "ab", "kind", "x y", "é", "n_1", "_s"]
PATTERNS = ["^a", "b$", "^[a-z]+$", "^n_", "_s$", "^.{0,3}$", "^(ab|x)*$", "[0-9]"]
SCALARS = ["a", "b", "ab", "x y", "", 0, 1, -3, 2.5, 10, True, False, None, "n_1"]


def scalar(rng):
    pick = rng.randint(0, 9)
    if pick == 0:
        return {"enum": rng.sample(SCALARS, rng.randint(1, 5))}
    if pick == 1:
        return {"const": rng.choice(SCALARS)}
    if pick in (2, 3):
        s = {"type": rng.choice(["integer", "number", ["integer", "null"]])}
        for keyword in ("minimum", "exclusiveMinimum"):
            if rng.random() < 0.3:
                s[keyword] = rng.choice([-20, -1.5, 0, 3, 7.25])
        for keyword in ("maximum", "exclusiveMaximum"):
            if rng.random() < 0.3:
                s[keyword] = rng.choice([-1, 0, 8, 12.5, 1000])
        if rng.random() < 0.25:
            s["multipleOf"] = rng.choice([1, 2, 3, 7, 0.5, 0.25])
        return s
    if pick in (4, 5, 6):
        s = {"type": "string"}
        if rng.random() < 0.4:
            s["minLength"] = rng.randint(0, 4)
        if rng.random() < 0.4:
            s["maxLength"] = rng.randint(2, 9)
        if rng.random() < 0.4:
            s["pattern"] = rng.choice(PATTERNS)
        if rng.random() < 0.2:
            s["format"] = rng.choice(["date", "time", "date-time", "ipv4", "ipv6", "uuid", "email", "hostname", "duration", "uri", "json-pointer"])
        return s
    return {"type": rng.choice(["boolean", "null", "integer", "string", ["string", "boolean"]])}


def schema(rng, depth=0):
    pick = rng.random()
    if depth >= 3 or pick < 0.3:
        return scalar(rng)
    sub = lambda: schema(rng, depth + 1)
    if pick < 0.6:
        names = rng.sample(NAMES, rng.randint(0, 4))
        s = {"type": "object"} if rng.random() < 0.9 else {}
        if names:
            s["properties"] = {n: sub() if rng.random() < 0.95 else rng.choice([True, False]) for n in names}
        if rng.random() < 0.5:
            s["required"] = rng.sample(NAMES, rng.randint(0, 2))
        if rng.random() < 0.4:
            s["additionalProperties"] = rng.choice([True, False, False]) if rng.random() < 0.6 else sub()
        if rng.random() < 0.2:
            s["patternProperties"] = {p: sub() for p in rng.sample(PATTERNS, rng.randint(1, 2))}
        if rng.random() < 0.15:
            s["propertyNames"] = rng.choice([{"pattern": rng.choice(PATTERNS)}, {"maxLength": 4}, {"enum": rng.sample(NAMES, 3)}])
        if rng.random() < 0.15:
            s["minProperties"] = rng.randint(0, 3)
        if rng.random() < 0.15:
            s["maxProperties"] = rng.randint(0, 4)
        if rng.random() < 0.15:
            s["dependentRequired"] = {rng.choice(NAMES): rng.sample(NAMES, 1)}
        if rng.random() < 0.15:
            s["unevaluatedProperties"] = rng.choice([False, {"type": "integer"}, True])
        if rng.random() < 0.1:
            s["dependentSchemas"] = {rng.choice(NAMES): {"required": rng.sample(NAMES, 1)}}
    elif pick < 0.75:
        s = {"type": "array"}
        if rng.random() < 0.6:
            s["items"] = sub() if rng.random() < 0.9 else False
        if rng.random() < 0.3:
            s["prefixItems"] = [sub() for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.3:
            s["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.4:
            s["maxItems"] = rng.randint(0, 4)
        if rng.random() < 0.2:
            s["contains"] = sub()
        if rng.random() < 0.15:
            s["unevaluatedItems"] = rng.choice([False, {"type": "string"}])
        if rng.random() < 0.15:
            s["uniqueItems"], s["items"] = True, rng.choice([{"enum": rng.sample(SCALARS, rng.randint(1, 6))}, {"type": ["boolean", "null"]}])
    elif pick < 0.82:
        s = {"anyOf": [sub() for _ in range(rng.randint(1, 3))]}
    elif pick < 0.88:
        s = {"oneOf": [sub() for _ in range(rng.randint(1, 3))]}
    elif pick < 0.93:
        s = {"allOf": [sub() for _ in range(2)]}
    elif pick < 0.95:
        s = {**sub(), "not": scalar(rng)}
    elif pick < 0.98:
        name = rng.choice(NAMES)
        s = {"type": "object", "properties": {name: scalar(rng)}, "required": [name],
             "if": {"properties": {name: {"const": rng.choice(SCALARS)}}}, "then": sub(), "else": sub()}
    else:
        s = {"type": "object", "properties": {"next": {"$ref": "#"}, "a": scalar(rng)}}
    if rng.random() < 0.15:
        s["allOf"] = s.get("allOf", []) + [sub()]
    if rng.random() < 0.1:
        s["anyOf"] = s.get("anyOf", []) + [sub(), {"required": [rng.choice(NAMES)]}]
    return s

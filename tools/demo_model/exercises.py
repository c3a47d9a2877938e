"""Tasks whose answer follows from the question: sums, JSON, copying, recall.

Every function draws one task and returns (question, answer). The question is the key that assigns the task to the
training or held-out split.
"""

from __future__ import annotations

import string
from random import Random

from chat import to_json
from world import COLOURS, FOODS, HOBBIES, JOBS, PLACES, World

Task = tuple[str, str]

TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times",
         8: "eight times", 10: "ten times"}  # fmt: skip
SEQUENCES = {
    "the days of the week": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "the months of the year": (
        "January February March April May June July August September October November December"
    ).split(),
    "the letters of the alphabet": list(string.ascii_lowercase),
    "the four seasons": "spring summer autumn winter".split(),
    "the colours of the rainbow": "red orange yellow green blue indigo violet".split(),
}
PLAIN_WORDS = (
    "apple river stone cloud window garden music paper silver winter summer morning evening light "
    "water fire house mountain forest bread table chair door tree flower bird fish star moon sun "
    "rain snow wind road bridge boat train horse little big small happy sad old new quick slow warm "
    "cold bright dark quiet loud soft hard sweet sour run walk jump sing dance read write dream "
    "hello world the a and or but with under over near far seven nine model token memory cache "
    "server number letter page book café naïve jalapeño über piñata"
).split()
EMOJI = "🍎 🌟 🐱 🐶 🌧 🔥 🎈 🚀 🌈 🍞 🎵 🐟 ⭐ 😊 🦊 🐝".split()
ITEMS = (
    "spoon coin letter feather marble ring button shell map candle whistle ribbon stamp pebble "
    "acorn thimble key brush bell ticket"
).split()
CONTAINERS = "box bag drawer jar chest basket tin cupboard".split()


def number(rng: Random) -> int:
    """Returns a number of one or two digits, because a model of this size can learn to add only these."""
    return rng.randrange(10 ** rng.choice([1, 2, 2, 2]))


def arithmetic(rng: Random) -> Task:
    """Addition and subtraction of numbers with up to two digits, and products of small numbers."""
    kind = rng.random()
    if kind < 0.1:
        a, b = rng.randrange(13), rng.randrange(13)
        sign, word, result = "*", "times", a * b
    elif kind < 0.58:
        a, b = number(rng), number(rng)
        sign, word, result = "+", "plus", a + b
    else:
        a, b = sorted((number(rng), number(rng)), reverse=True)
        sign, word, result = "-", "minus", a - b
    full = f"{a} {sign} {b} = {result}"
    return rng.choice(
        [
            (f"What is {a} {sign} {b}?", full),
            (f"Calculate {a} {sign} {b}.", full),
            (f"{a} {sign} {b} =", str(result)),
            (f"How much is {a} {word} {b}?", f"{a} {word} {b} is {result}."),
        ]
    )


def word_problem(rng: Random, world: World) -> Task:
    """A story with one step: someone has, gets or gives away things."""
    name = rng.choice(world.people).name
    items = rng.choice(["plums", "coins", "shells", "candles", "letters", "apples"])
    a, b = sorted((rng.randrange(2, 100), rng.randrange(1, 60)), reverse=True)
    if rng.random() < 0.5:
        happens, result = f"gets {b} more", a + b
    else:
        happens, result = f"gives away {b}", a - b
    return f"{name} has {a} {items} and {happens}. How many {items} does {name} have now?", (
        f"{name} has {result} {items} now."
    )


def compare(rng: Random) -> Task:
    """The largest or smallest of two or three numbers."""
    numbers = rng.sample(range(1000), rng.choice([2, 3]))
    if rng.random() < 0.5:
        return f"Which is the largest: {', '.join(map(str, numbers))}?", str(max(numbers))
    return f"Which is the smallest: {', '.join(map(str, numbers))}?", str(min(numbers))


def nonsense(rng: Random) -> str:
    """Returns an invented word, so that copying cannot rely on known words."""
    syllables = [rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 4))]
    word = "".join(syllables) + rng.choice(["", "n", "s", "k"])
    return word.capitalize() if rng.random() < 0.3 else word


def random_word(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(PLAIN_WORDS)
    if kind < 0.75:
        return nonsense(rng)
    if kind < 0.9:
        return str(rng.randrange(10 ** rng.randint(1, 5)))
    if kind < 0.95:
        return rng.choice(EMOJI)
    return "".join(rng.choices(string.ascii_letters + string.digits, k=rng.randint(3, 8)))


def random_words(rng: Random, low: int, high: int) -> list[str]:
    return [random_word(rng) for _ in range(rng.randint(low, high))]


def repeat_after_me(rng: Random, passage: str | None = None) -> Task:
    """A text to copy: random words, or the given passage."""
    text = passage or " ".join(random_words(rng, 2, rng.choice([6, 12, 40])))
    ask = rng.choice(["Repeat after me: {}", "Say exactly this: {}", "Copy this text: {}", "Please repeat: {}"])
    return ask.format(text), text


def repeat_times(rng: Random) -> Task:
    """A short phrase to repeat k times."""
    count, word = rng.choice(list(TIMES.items()))
    text = " ".join(random_words(rng, 1, 4))
    joiner, how = rng.choice([(" ", ""), ("\n", ", one per line"), (", ", ", separated by commas")])
    return f'Say "{text}" {word}{how}.', joiner.join([text] * count)


def count_up(rng: Random) -> Task:
    """Counting between two numbers, upwards or downwards."""
    low = rng.choice([1, 1, 1, rng.randrange(200)])
    high = low + rng.randint(2, rng.choice([10, 20, 40]))
    numbers = list(range(low, high + 1))
    kind = rng.random()
    joiner, how = rng.choice([(", ", ""), (" ", " with spaces"), ("\n", ", one per line")])
    if low == 1 and kind < 0.4:
        question = f"Count to {high}{how}."
    elif kind < 0.8:
        question = f"Count from {low} to {high}{how}."
    else:
        question = f"Count down from {high} to {low}{how}."
        numbers.reverse()
    return question, joiner.join(map(str, numbers))


def list_task(rng: Random) -> Task:
    """Known sequences, and lists in other layouts."""
    kind = rng.randrange(6)
    if kind == 0:
        name, values = rng.choice(list(SEQUENCES.items()))
        joiner, how = rng.choice([(", ", ""), ("\n", ", one per line")])
        return f"List {name}{how}.", joiner.join(values)
    words = random_words(rng, 2, 7)
    given = ", ".join(words)
    if kind == 1:
        return f"Make a numbered list: {given}", "\n".join(f"{i}. {w}" for i, w in enumerate(words, 1))
    if kind == 2:
        return f"Make a bullet list: {given}", "\n".join(f"- {w}" for w in words)
    if kind == 3:
        return f"Write in reverse order: {given}", ", ".join(reversed(words))
    if kind == 4:
        which = rng.choice(["first", "last"])
        return f"What is the {which} word in this list: {given}?", words[0] if which == "first" else words[-1]
    word = nonsense(rng) if rng.random() < 0.5 else rng.choice(PLAIN_WORDS)
    return f"Spell the word {word}.", "-".join(word)


def json_of_given(rng: Random, world: World) -> Task:
    """A JSON record of facts that the question states."""
    name = rng.choice([rng.choice(world.people).name, nonsense(rng).capitalize()])
    stated = [
        ("age", (age := rng.randint(5, 99)), f"is {age} years old"),
        ("job", (job := rng.choice(JOBS)), f"works as {'an' if job[0] in 'aeiou' else 'a'} {job}"),
        ("home", (home := rng.choice(PLACES)), f"lives in {home}"),
        ("food", (food := rng.choice(FOODS)), f"likes {food}"),
        ("colour", (colour := rng.choice(COLOURS)), f"wears {colour}"),
        ("hobby", (hobby := rng.choice(HOBBIES)), f"loves {hobby}"),
        ("married", (married := rng.random() < 0.5), "is married" if married else "is not married"),
    ]
    chosen = sorted(rng.sample(range(len(stated)), rng.randint(2, 5)))
    parts = [stated[i] for i in chosen]
    sentence = f"{name} {', '.join(p[2] for p in parts[:-1])} and {parts[-1][2]}."
    answer = {"name": name} | {key: value for key, value, _ in parts}
    ask = rng.choice(["Write this as JSON: {}", "Turn this into a JSON object: {}", "{} Give me that as JSON."])
    return ask.format(sentence), to_json(answer)


def json_list(rng: Random) -> Task:
    """A JSON array of given words or numbers, or an object of given pairs."""
    if rng.random() < 0.6:
        values: list[object] = [
            rng.randrange(1000) if rng.random() < 0.3 else rng.choice(PLAIN_WORDS) for _ in range(rng.randint(2, 8))
        ]
        return f"Write as a JSON array: {', '.join(map(str, values))}", to_json(values)
    keys = rng.sample(ITEMS, rng.randint(2, 5))
    pairs = {key: rng.randrange(100) for key in keys}
    given = ", ".join(f"{key} is {value}" for key, value in pairs.items())
    return f"Write as a JSON object: {given}", to_json(pairs)


def recall(rng: Random, facts: int) -> Task:
    """A list of `facts` invented statements, then a question about one of them."""
    places = rng.sample([f"{c} {n}" for c in COLOURS for n in CONTAINERS], min(facts, 80))
    held = {place: rng.choice(ITEMS) if rng.random() < 0.7 else nonsense(rng) for place in places}
    lines = [f"The {place} holds {'an' if item[0].lower() in 'aeiou' else 'a'} {item}." for place, item in held.items()]
    place = rng.choice(places)
    if rng.random() < 0.5:
        joiner, intro = " ", "Read this: "
    else:
        joiner, intro = "\n", "Here are some facts:\n"
    return f"{intro}{joiner.join(lines)}\nWhat does the {place} hold?", f"The {place} holds {'an' if held[place][0].lower() in 'aeiou' else 'a'} {held[place]}."


def recall_code(rng: Random, names: list[str]) -> Task:
    """Secret numbers of several people, then a question about one of them."""
    codes = {name: str(rng.randrange(1000, 10000)) for name in names}
    lines = [f"The code of {name} is {code}." for name, code in codes.items()]
    name = rng.choice(names)
    return "\n".join([*lines, f"What is the code of {name}?"]), f"The code of {name} is {codes[name]}."

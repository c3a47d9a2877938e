"""Documents by domain, their split into training and held-out, and packed rows.

A document is a list of (text, taught) pieces. A hash of a task's key (its question, or the hero and thing of a story)
decides whether the task is held out. A held-out combination is therefore never in the training data, whatever its
size.

    python corpus.py --tokenizer DIR --out DIR    writes train and held-out rows
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer

import exercises
import facts
import stories
import toolcalls
from chat import END_OF_TEXT, Message, Piece, render_chat
from exercises import Task
from world import article, build_world

HELD_OUT_ONE_IN = 20
WORLD = build_world()

SHORT_ROW, LONG_ROW = 512, 2048
STORY_ASKS = ["Tell me a story about {hero} and {thing}.", "Write a story about {hero} and {thing}.",
              "I would like to hear about {hero} and {thing}."]  # fmt: skip
JSON_ASKS = ["Describe {} as JSON.", "Give me {} as JSON.", "Write a JSON record about {}.", "What do you know about {}? Answer in JSON."]
ABOUT_ASKS = ["Tell me about {}.", "What do you know about {}?", "Describe {}.", "Write a few sentences about {}."]


def is_held_out(key: str) -> bool:
    return zlib.crc32(key.encode()) % HELD_OUT_ONE_IN == 0


# Makes the wording of an answer from its full sentence and its short form.
Style = Callable[[str, str], str]


def full_answer(full: str, short: str) -> str:
    return full


def short_answer(full: str, short: str) -> str:
    return short


def framed_answer(frame: str, full: str, short: str) -> str:
    """Returns the full sentence in a frame such as "Sure! {}"."""
    return frame.format(full)


class Drawer:
    """Draws tasks of one split from one stream of random numbers."""

    def __init__(self, seed: str, held_out: bool) -> None:
        self.rng = Random(seed)
        self.held_out = held_out

    def accepts(self, key: str) -> bool:
        return is_held_out(key) == self.held_out

    def task(self, make: Callable[[], Task]) -> Task:
        """Returns a task whose question is in this split."""
        while True:
            question, answer = make()
            if self.accepts(question):
                return question, answer

    def story_parts(self) -> tuple[stories.Person, stories.Thing, str]:
        while True:
            hero, thing = self.rng.choice(WORLD.people), self.rng.choice(WORLD.things)
            if self.accepts(f"{hero.name} {thing.name}"):
                return hero, thing, self.rng.choice(list(stories.PLOTS))

    def story(self) -> str:
        return stories.story(self.rng, WORLD, *self.story_parts())

    def story_task(self) -> Task:
        hero, thing, plot = self.story_parts()
        ask = self.rng.choice(STORY_ASKS).format(hero=hero.name, thing=article(thing.name))
        return ask, stories.story(self.rng, WORLD, hero, thing, plot)

    def portrait(self) -> tuple[str, str]:
        """Returns the name of an entity and a few sentences about it."""
        entity, _ = facts.pick_entity(self.rng, WORLD)
        if isinstance(entity, stories.Person):
            return entity.name, stories.portrait(self.rng, entity)
        if isinstance(entity, stories.Place):
            return entity.name, stories.place_portrait(self.rng, entity)
        animal = self.rng.choice(WORLD.animals)
        return article(animal.kind), stories.animal_portrait(self.rng, animal)

    def about_task(self) -> Task:
        name, text = self.portrait()
        return self.rng.choice(ABOUT_ASKS).format(name), text

    def fact_task(self, style: Style = full_answer) -> Task:
        """Returns a question about an entity of the world, or sometimes about an unknown one."""
        entity, choices = facts.pick_entity(self.rng, WORLD)
        fact = self.rng.choice(choices)
        slots = facts.fields(entity)
        stranger = isinstance(entity, stories.Person) and self.rng.random() < 0.06
        if stranger:
            slots["name"] = exercises.nonsense(self.rng).capitalize()
        question = self.rng.choice(fact.asked).format(**slots)
        if stranger:
            return question, style(f"I do not know anyone called {slots['name']}.", "unknown")
        return question, style(fact.sentence.format(**slots), fact.short.format(**slots))

    def json_task(self) -> Task:
        kind = self.rng.random()
        if kind < 0.5:
            entity, _ = facts.pick_entity(self.rng, WORLD)
            name = facts.label(entity)
            name = name if isinstance(entity, stories.Person | stories.Place) else article(name)
            return self.rng.choice(JSON_ASKS).format(name), exercises.to_json(facts.record(entity))
        if kind < 0.85:
            return exercises.json_of_given(self.rng, WORLD)
        return exercises.json_list(self.rng)

    def sum_task(self) -> Task:
        kind = self.rng.random()
        if kind < 0.84:
            return exercises.arithmetic(self.rng)
        if kind < 0.92:
            return exercises.word_problem(self.rng, WORLD)
        return exercises.compare(self.rng)

    def copy_task(self) -> Task:
        kind = self.rng.random()
        if kind < 0.3:
            return exercises.repeat_after_me(self.rng)
        if kind < 0.38:
            passage = self.story() if self.rng.random() < 0.4 else self.portrait()[1]
            return exercises.repeat_after_me(self.rng, passage)
        if kind < 0.58:
            return exercises.repeat_times(self.rng)
        if kind < 0.75:
            return exercises.count_up(self.rng)
        return exercises.list_task(self.rng)

    def recall_task(self, most: int = 24) -> Task:
        if self.rng.random() < 0.75:
            return exercises.recall(self.rng, self.rng.randint(2, most))
        names = [person.name for person in self.rng.sample(WORLD.people, self.rng.randint(2, 12))]
        return exercises.recall_code(self.rng, names)

    def draw(self, make: Callable[[], Task], turns: int) -> list[Message]:
        """Returns a conversation of independent tasks."""
        messages: list[Message] = []
        for _ in range(turns):
            question, answer = self.task(make)
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return messages

    # The functions below return one document, by domain.

    def story_document(self) -> list[Piece]:
        kind = self.rng.random()
        if kind < 0.55:
            return [(self.story(), True)]
        if kind < 0.75:
            return [(self.portrait()[1], True)]
        make = self.story_task if kind < 0.92 else self.about_task
        # Stories are already split by hero and thing. Portraits have no split.
        question, answer = make()
        return render_chat([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])

    def qa_document(self) -> list[Piece]:
        rng = self.rng
        kind = rng.random()
        prompt, style = "", full_answer
        if kind < 0.2:
            prompt = rng.choice(facts.PLAIN_STYLES)
        elif kind < 0.35:
            prompt, style = rng.choice(facts.SHORT_STYLES), short_answer
        elif kind < 0.5:
            prompt, frame = rng.choice(list(facts.FRAMED_STYLES.items()))
            style = partial(framed_answer, frame)
        system: list[Message] = [{"role": "system", "content": prompt}] if prompt else []
        if rng.random() < 0.4:
            return render_chat(system + self.topic_turns(style))
        messages = self.draw(lambda: self.fact_task(style), rng.randint(1, 5))
        if kind >= 0.5 and rng.random() < 0.15:
            question, answer = rng.choice(facts.SELF)
            at = rng.choice([0, len(messages)])
            messages[at:at] = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return render_chat(system + messages)

    def topic_turns(self, style: Style) -> list[Message]:
        """Returns a question about a named entity, then follow-ups with pronouns."""
        while True:
            entity, choices = facts.pick_entity(self.rng, WORLD)
            slots = facts.fields(entity)
            first, *rest = self.rng.sample(choices, min(len(choices), self.rng.randint(2, 4)))
            question = self.rng.choice(first.asked).format(**slots)
            if self.accepts(question):
                break
        turns = [(question, first)] + [(self.rng.choice(fact.follow_ups).format(**slots), fact) for fact in rest]
        messages: list[Message] = []
        for question, fact in turns:
            answer = style(fact.sentence.format(**slots), fact.short.format(**slots))
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return messages

    def json_document(self) -> list[Piece]:
        return render_chat(self.draw(self.json_task, self.rng.choice([1, 1, 2, 3])))

    def sum_document(self) -> list[Piece]:
        return render_chat(self.draw(self.sum_task, self.rng.choice([1, 2, 4, 8])))

    def copy_document(self) -> list[Piece]:
        return render_chat(self.draw(self.copy_task, self.rng.choice([1, 1, 2, 4])))

    def echo_document(self) -> list[Piece]:
        """Returns random words that are repeated many times, or a longer sequence that is repeated once.

        No other document teaches repetition so densely. Tools, recall and JSON need the same skill.
        """
        if self.rng.random() < 0.6:
            words, times = exercises.random_words(self.rng, 2, 8), self.rng.randint(4, 12)
        else:
            words, times = exercises.random_words(self.rng, 8, 40), 1
        text, joiner = " ".join(words), self.rng.choice([" ", "\n", ", "])
        return [(text, False), ((joiner + text) * times, True)]

    def recall_document(self) -> list[Piece]:
        return render_chat(self.draw(self.recall_task, 1))

    def tool_choice(self) -> tuple[list[dict], int]:
        """Returns one to four schemas in random order, and the index of the wanted one."""
        listed = self.rng.sample(toolcalls.TOOLS, self.rng.choice([1, 2, 2, 3, 4]))
        return [tool for tool, _ in listed], self.rng.randrange(len(listed))

    def tool_messages(self, schemas: list[dict], wanted: int) -> list[Message]:
        """Returns a request for the wanted tool, its call and the answer."""
        name = schemas[wanted]["function"]["name"]
        make = next(make for tool, make in toolcalls.TOOLS if tool["function"]["name"] == name)

        def use() -> toolcalls.Use:
            while True:
                drawn = make(self.rng, WORLD)
                if self.accepts(drawn.request):
                    return drawn

        if self.rng.random() < 0.12:
            return toolcalls.parallel_messages(use(), use(), name)
        return toolcalls.call_messages(use(), name)

    def tool_document(self) -> list[Piece]:
        schemas, wanted = self.tool_choice()
        messages: list[Message] = []
        if self.rng.random() < 0.3:
            messages.append({"role": "system", "content": self.rng.choice(facts.PLAIN_STYLES)})
        for _ in range(self.rng.choice([1, 1, 2])):
            if self.rng.random() < 0.15:
                messages += self.draw(self.fact_task, 1)
            else:
                messages += self.tool_messages(schemas, wanted)
                wanted = self.rng.randrange(len(schemas))
        return render_chat(messages, schemas)

    def mixed_document(self, turns: int = 6) -> list[Piece]:
        """Returns a conversation with several kinds of tasks."""
        messages: list[Message] = []
        makes = [self.fact_task, self.fact_task, self.sum_task, self.json_task, self.copy_task, self.about_task]
        for _ in range(self.rng.randint(2, turns)):
            messages += self.draw(self.rng.choice(makes), 1)
        return render_chat(messages)

    # Documents that are longer than a short row.

    def haystack_document(self) -> list[Piece]:
        """Returns a long text with hidden statements, then questions about them."""
        rng = self.rng
        _, answer = question = self.task(lambda: exercises.recall(rng, rng.randint(2, 6)))
        lines = question[0].replace("Read this: ", "").replace("Here are some facts:\n", "").split("\n")
        statements = " ".join(lines[:-1]).replace(". ", ".\n").split("\n")
        reading = [self.story() if rng.random() < 0.6 else self.portrait()[1] for _ in range(rng.randint(3, 9))]
        for statement in statements:
            reading.insert(rng.randrange(len(reading) + 1), statement)
        messages = [{"role": "user", "content": "Read this:\n" + "\n".join(reading) + "\n" + lines[-1]},
                    {"role": "assistant", "content": answer}]  # fmt: skip
        return render_chat(messages)

    def long_recall_document(self) -> list[Piece]:
        return render_chat(self.draw(lambda: exercises.recall(self.rng, self.rng.randint(24, 80)), 1))

    def long_copy_document(self) -> list[Piece]:
        def make() -> Task:
            passage = "\n".join(self.story() for _ in range(self.rng.randint(1, 4)))
            return exercises.repeat_after_me(self.rng, passage)

        return render_chat(self.draw(make, 1))

    def long_chat_document(self) -> list[Piece]:
        return self.mixed_document(turns=24)


SHORT_DOMAINS = {"story": 18, "qa": 30, "json": 12, "sum": 45, "tool": 10, "copy": 25, "echo": 10, "recall": 14, "mixed": 8}
LONG_DOMAINS = {"haystack": 3, "long_recall": 3, "long_copy": 4, "long_chat": 4, "story": 6, "qa": 5, "sum": 5,
                "tool": 3, "copy": 3, "json": 2}  # fmt: skip


def documents(drawer: Drawer, domains: dict[str, int]) -> Iterator[list[Piece]]:
    """Yields documents without end, with the given weights of the domains."""
    names, weights = list(domains), list(domains.values())
    while True:
        name = drawer.rng.choices(names, weights)[0]
        yield getattr(drawer, f"{name}_document")()


def encode(tokenizer: Tokenizer, pieces: list[Piece]) -> tuple[list[int], list[bool]]:
    """Returns the token ids and taught flags of one document, with its end mark.

    Pieces are encoded separately, because a server encodes prompt and answer separately.
    """
    tokens: list[int] = []
    taught: list[bool] = []
    for text, learn in [*pieces, (END_OF_TEXT, True)]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokens += ids
        taught += [learn] * len(ids)
    return tokens, taught


def pack(encoded: Iterator[tuple[list[int], list[bool]]], rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Fills rows of length + 1 tokens. Each row begins with a new document.

    From a small pool, it selects the longest document that fits. If none fits, it cuts one at the end of the row.
    Returns tokens and flags [rows, length + 1].
    """
    tokens = np.zeros((rows, length + 1), np.uint16)
    taught = np.zeros((rows, length + 1), np.bool_)
    pool = [next(encoded) for _ in range(24)]
    for row in range(rows):
        used = 0
        while used <= length:
            room = length + 1 - used
            # The first document of a row is arbitrary, so that all kinds occur at position 0.
            fitting = [i for i, (ids, _) in enumerate(pool) if len(ids) <= room]
            if used == 0 or not fitting:
                chosen = 0
            else:
                chosen = max(fitting, key=lambda i: len(pool[i][0]))
            ids, flags = pool.pop(chosen)
            pool.append(next(encoded))
            count = min(len(ids), room)
            tokens[row, used : used + count] = ids[:count]
            taught[row, used : used + count] = flags[:count]
            used += count
    return tokens, taught


def build_rows(job: tuple[str, str, str, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns one shard. job: (tokenizer file, seed, split, row length, number of rows)."""
    tokenizer_file, seed, split, length, rows = job
    tokenizer = Tokenizer.from_file(tokenizer_file)
    drawer = Drawer(seed, held_out=split == "heldout")
    stream = documents(drawer, SHORT_DOMAINS if length == SHORT_ROW else LONG_DOMAINS)
    encoded = (encode(tokenizer, pieces) for pieces in stream)
    encoded = (item for item in encoded if len(item[0]) <= length + 1)
    return pack(encoded, rows, length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with tokenizer.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--short-tokens", type=float, default=20e6)
    parser.add_argument("--long-tokens", type=float, default=6e6)
    parser.add_argument("--workers", type=int, default=3)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    file = str(args.tokenizer / "tokenizer.json")
    shards = 12
    with ProcessPoolExecutor(args.workers) as pool:
        for length, wanted in [(SHORT_ROW, args.short_tokens), (LONG_ROW, args.long_tokens)]:
            sizes = {"train": int(wanted / length / shards) + 1, "heldout": 8}
            for split, rows in sizes.items():
                jobs = [(file, f"{split}-{length}-{n}", split, length, rows) for n in range(shards)]
                parts = list(pool.map(build_rows, jobs))
                tokens = np.concatenate([part[0] for part in parts])
                taught = np.concatenate([part[1] for part in parts])
                np.save(args.out / f"{split}-{length}-tokens.npy", tokens)
                np.save(args.out / f"{split}-{length}-taught.npy", taught)
                print(f"{split} {length}: {tokens.shape[0]} rows, {taught.mean():.0%} taught", flush=True)


if __name__ == "__main__":
    main()

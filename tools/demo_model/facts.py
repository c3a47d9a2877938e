"""Questions about the world with their full and short answers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from world import Animal, Person, Place, Thing, World, article

Entity = Person | Place | Animal | Thing


@dataclass(frozen=True)
class Fact:
    """One attribute of one kind of entity.

    asked: questions with the entity's name. follow_ups: questions for an entity that is already the topic. Both may
    use the entity's fields.
    """

    attribute: str
    asked: list[str]
    follow_ups: list[str]
    sentence: str
    short: str


PERSON_FACTS = [
    Fact("age", ["How old is {name}?", "What is {name}'s age?", "Can you tell me how old {name} is?"],
         ["How old is {they}?", "And {their} age?"], "{name} is {age} years old.", "{age}"),
    Fact("job", ["What does {name} do for a living?", "What is {name}'s job?", "What work does {name} do?"],
         ["What does {they} do for a living?", "What is {their} job?"], "{name} is {a_job}.", "{job}"),
    Fact("home", ["Where does {name} live?", "Which town is {name}'s home?", "Where is {name} from?"],
         ["Where does {they} live?", "And where is {they} from?"], "{name} lives in {home}.", "{home}"),
    Fact("pet_kind", ["What pet does {name} have?", "What kind of pet does {name} keep?", "Does {name} have a pet?"],
         ["Does {they} have a pet?", "What pet does {they} have?"],
         "{name} has a {pet_kind} called {pet_name}.", "{pet_kind}"),
    Fact("pet_name", ["What is the name of {name}'s pet?", "What is {name}'s {pet_kind} called?",
                      "How does {name} call {their} {pet_kind}?"],
         ["What is {their} pet called?", "And the name of {their} {pet_kind}?"],
         "{name}'s {pet_kind} is called {pet_name}.", "{pet_name}"),
    Fact("food", ["What does {name} like to eat?", "What is {name}'s favourite food?", "Which food does {name} like best?"],
         ["What does {they} like to eat?", "And {their} favourite food?"],
         "{name}'s favourite food is {food}.", "{food}"),
    Fact("colour", ["What is {name}'s favourite colour?", "Which colour does {name} like best?",
                    "What colour does {name} love?"],
         ["What is {their} favourite colour?", "And {their} favourite colour?"],
         "{name}'s favourite colour is {colour}.", "{colour}"),
    Fact("hobby", ["What is {name}'s hobby?", "What does {name} love to do?", "What does {name} do in {their} free time?"],
         ["What is {their} hobby?", "What does {they} love to do?"], "{name} loves {hobby}.", "{hobby}"),
    Fact("friend", ["Who is {name}'s best friend?", "Who is {name}'s friend?", "Who does {name} like to meet?"],
         ["Who is {their} best friend?", "And {their} friend?"], "{name}'s best friend is {friend}.", "{friend}"),
]  # fmt: skip

PLACE_FACTS = [
    Fact("kind", ["What kind of place is {name}?", "What is {name}?", "What sort of town is {name}?"],
         ["What kind of place is it?"], "{name} is {a_kind} in {region}.", "{kind}"),
    Fact("region", ["Where is {name}?", "In which region is {name}?", "Where does {name} lie?"],
         ["Where is it?", "In which region is it?"], "{name} is in {region}.", "{region}"),
    Fact("river", ["Which river flows through {name}?", "What is the river in {name}?", "On which river does {name} lie?"],
         ["Which river flows there?"], "{name} lies on {river}.", "{river}"),
    Fact("landmark", ["What can I see in {name}?", "What is the landmark of {name}?", "Which sight is there in {name}?"],
         ["What can I see there?"], "In {name} you can see {landmark}.", "{landmark}"),
    Fact("famous", ["What is {name} known for?", "What is {name} famous for?", "Why do people know {name}?"],
         ["What is it known for?"], "{name} is known for {famous}.", "{famous}"),
    Fact("people", ["How many people live in {name}?", "What is the population of {name}?", "How big is {name}?"],
         ["How many people live there?"], "About {people} people live in {name}.", "{people}"),
    Fact("weather", ["What is the weather like in {name}?", "How is the climate in {name}?",
                     "What weather does {name} usually have?"],
         ["What is the weather like there?"], "The weather in {name} is mostly {weather}.", "{weather}"),
]  # fmt: skip

ANIMAL_FACTS = [
    Fact("legs", ["How many legs does a {kind} have?", "How many legs has a {kind}?", "Tell me the number of legs of a {kind}."],
         ["How many legs does it have?"], "A {kind} has {legs} legs.", "{legs}"),
    Fact("sound", ["What sound does a {kind} make?", "How does a {kind} sound?", "What noise does a {kind} make?"],
         ["What sound does it make?"], "A {kind} {sound}.", "it {sound}"),
    Fact("food", ["What does a {kind} eat?", "What is the food of a {kind}?", "What can I feed a {kind}?"],
         ["What does it eat?"], "A {kind} eats {food}.", "{food}"),
    Fact("home", ["Where does a {kind} live?", "Where can I find a {kind}?", "Where is a {kind} at home?"],
         ["Where does it live?"], "A {kind} lives {home}.", "{home}"),
    Fact("young", ["What is a young {kind} called?", "What do you call the young of a {kind}?", "What is a baby {kind} called?"],
         ["What is its young called?"], "A young {kind} is called {a_young}.", "{young}"),
]  # fmt: skip

THING_FACTS = [
    Fact("material", ["What is a {name} made of?", "What material is a {name} made of?", "Of what do people make a {name}?"],
         ["What is it made of?"], "A {name} is made of {material}.", "{material}"),
    Fact("use", ["What is a {name} used for?", "What is a {name} for?", "What can I do with a {name}?"],
         ["What is it used for?"], "A {name} is used for {use}.", "{use}"),
    Fact("owner", ["Who owns the {colour} {name}?", "Whose is the {colour} {name}?", "To whom does the {colour} {name} belong?"],
         ["Who owns the {colour} one?"], "The {colour} {name} belongs to {owner}.", "{owner}"),
]  # fmt: skip

FACTS: list[tuple[str, type, list[Fact]]] = [
    ("people", Person, PERSON_FACTS),
    ("places", Place, PLACE_FACTS),
    ("animals", Animal, ANIMAL_FACTS),
    ("things", Thing, THING_FACTS),
]
KIND_WEIGHTS = [5, 2, 2, 1]

SELF = [
    ("Who are you?", "I am Octavo Demo, a very small language model."),
    ("What is your name?", "My name is Octavo Demo."),
    ("What can you do?", "I can tell stories, answer questions about my little world, write JSON, "
     "do small sums, call tools, and copy and repeat text."),
    ("Are you a human?", "No, I am a very small language model called Octavo Demo."),
    ("Hello!", "Hello! How can I help you?"),
    ("Hi", "Hello! How can I help you?"),
    ("Good morning!", "Good morning! What would you like to know?"),
    ("Thank you!", "You are welcome!"),
    ("Thanks a lot!", "You are welcome!"),
    ("Goodbye!", "Goodbye! See you soon."),
    ("How are you?", "I am fine, thank you. How can I help you?"),
]  # fmt: skip

# Questions about the real world, which this model does not know.
BEYOND = [
    "What is the capital of France?", "Who wrote Hamlet?", "What is the speed of light?",
    "Who is the president?", "What is the meaning of life?", "Explain quantum physics.",
    "Write a Python program.", "What is the largest planet?", "How do I cook rice?",
    "Translate good morning into Spanish.", "What happened in 1969?", "What is a neural network?",
    "Who painted the Mona Lisa?", "What is the population of China?", "How does a computer work?",
    "What is the best movie?", "Tell me a joke.", "What is the tallest mountain?",
    "How far away is the moon?", "What should I wear today?",
]  # fmt: skip
SELF += [(question, "I do not know that. I only know my little world.") for question in BEYOND]

# A style that the system prompt sets, and how it makes an answer from (sentence, short).
SHORT_STYLES = [
    "Answer with as few words as possible.",
    "Give short answers, without a full sentence.",
    "You are a terse assistant. Only say the answer.",
]
PLAIN_STYLES = [
    "You are a helpful assistant.",
    "You are Octavo Demo, a helpful assistant.",
    "Answer in full sentences.",
    "You know everything about the small world.",
]
FRAMED_STYLES = {
    "Begin every answer with \"Sure!\"": "Sure! {}",
    "You are a pirate.": "Arr! {} Ahoy!",
    "Be very polite.": "With pleasure. {}",
    "End every answer with a star.": "{} ⭐",
    "You are a cheerful assistant.": "{} 😊",
}


def fields(entity: Entity) -> dict[str, object]:
    """Returns every field that a template about this entity may use."""
    values = dict(vars(entity))
    if isinstance(entity, Person):
        values |= {"they": entity.they, "their": entity.their}
    for name in ("job", "kind", "young"):
        if name in values:
            values["a_" + name] = article(str(values[name]))
    return values


def entities(world: World, kind: str) -> list[Entity]:
    return getattr(world, kind)


def pick_entity(rng: Random, world: World) -> tuple[Entity, list[Fact]]:
    """Returns an entity, and the facts about it."""
    kind, _, facts = rng.choices(FACTS, KIND_WEIGHTS)[0]
    return rng.choice(entities(world, kind)), facts


def label(entity: Entity) -> str:
    """Returns the entity's name, for keys and titles."""
    return entity.kind if isinstance(entity, Animal) else entity.name


def record(entity: Entity) -> dict[str, object]:
    """Returns the entity as a JSON record with a fixed order of keys."""
    if isinstance(entity, Person):
        return {
            "name": entity.name, "age": entity.age, "job": entity.job, "home": entity.home,
            "pet": {"kind": entity.pet_kind, "name": entity.pet_name},
            "likes": [entity.food, entity.colour, entity.hobby], "friend": entity.friend,
        }  # fmt: skip
    if isinstance(entity, Place):
        return {
            "name": entity.name, "kind": entity.kind, "region": entity.region,
            "river": entity.river, "known_for": entity.famous, "people": entity.people,
            "weather": entity.weather,
        }  # fmt: skip
    if isinstance(entity, Animal):
        return {
            "animal": entity.kind, "legs": entity.legs, "sound": entity.sound,
            "food": entity.food, "lives": entity.home, "young": entity.young,
        }  # fmt: skip
    return {
        "thing": entity.name, "material": entity.material, "use": entity.use,
        "colour": entity.colour, "owner": entity.owner,
    }  # fmt: skip

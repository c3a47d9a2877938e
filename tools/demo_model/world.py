"""The small world that the demo model knows: people, places, animals, objects.

Names and possible values are written by hand. A fixed seed assigns the values, so every run builds the same world,
and every question about it has one right answer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

SEED = 20

SHE = (
    "Mira Zoë Hanna Lucía Freya Amara Noor Chloé Ingrid Sana Tilda Wren Yuki Petra "
    "Odile Marta Bea Kaia Renée Juno Lotte Priya Anouk Esme"
).split()
HE = (
    "Tomas José Søren Emil Bruno Kofi Łukasz Anton Ravi Hugo Jonas André Felix Omar "
    "Pavel Theo Nils Ivo Björn Caspar Dario Milan Otis Rémi"
).split()
PLACES = (
    "Elmford,Brightwater,Hollowby,Saltmere,Kestrel Hill,Oakhaven,Pinewick,Graystone,"
    "Willowdale,Foxley,Northquay,Älvik,Sandrøy,Millbrook,Ashcombe,Larkfield"
).split(",")

JOBS = (
    "baker,fisher,teacher,clockmaker,gardener,doctor,painter,carpenter,potter,beekeeper,"
    "librarian,miller,postman,cook,weaver,sailor,smith,tailor,shepherd,glassblower"
).split(",")
FOODS = (
    "plum cake,onion soup,fresh bread,apple pie,fish stew,honey toast,mushroom rice,"
    "lemon tart,bean salad,pumpkin soup,cheese dumplings,cherry jam,potato pancakes,crêpes"
).split(",")
COLOURS = "red,blue,green,yellow,purple,orange,white,silver,brown,pink".split(",")
HOBBIES = (
    "playing the flute,painting boats,collecting stones,riding horses,flying kites,"
    "playing chess,singing,growing tulips,carving wood,watching stars,swimming,"
    "playing the violin,baking,writing poems"
).split(",")
PETS = "cat,dog,rabbit,parrot,goose,pony,hedgehog,tortoise".split(",")
PET_NAMES = (
    "Pip Biscuit Shadow Clover Nutmeg Button Pepper Moss Toffee Bramble Comet Daisy Figaro "
    "Ginger Hazel Iggy Jasper Kiwi Luna Mango Noodle Olive Plum Quill Rusty Saffron Teddy "
    "Umber Velvet Waffle Ziggy Acorn Bubbles Cricket Dusty Ember Fern Gizmo Honey Indigo "
    "Jelly Kipper Lentil Maple Nettle Oreo Pickle Rocket"
).split()
PLACE_KINDS = "village,harbour town,market town,mountain village,island town,river town".split(",")
REGIONS = "the Green Valley,the West Coast,the High Hills,the Lake Country".split(",")
RIVERS = "the Alder,the Brindle,the Cray,the Dunmore,the Evenlode".split(",")
LANDMARKS = (
    "an old lighthouse,a stone bridge,a tall windmill,a clock tower,a round market hall,"
    "a castle on a rock,a garden with a maze,a library with a glass roof"
).split(",")
FAMOUS = (
    "its honey,its wool,its ships,its glass,its cheese,its apples,its lanterns,its kites,"
    "its pottery,its fish market,its roses,its bells,its music school,its salt,"
    "its wooden toys,its cherry trees"
).split(",")
WEATHER = "rainy,windy,sunny,foggy,snowy,mild".split(",")

# kind: (legs, sound, food, home, young)
ANIMALS: dict[str, tuple[int, str, str, str, str]] = {
    "cat": (4, "meows", "fish and mice", "in houses", "kitten"),
    "dog": (4, "barks", "meat and bones", "in houses", "puppy"),
    "cow": (4, "moos", "grass", "on farms", "calf"),
    "sheep": (4, "bleats", "grass", "in meadows", "lamb"),
    "horse": (4, "neighs", "hay and oats", "in stables", "foal"),
    "duck": (2, "quacks", "water plants", "on ponds", "duckling"),
    "hen": (2, "clucks", "grain", "in a coop", "chick"),
    "goose": (2, "honks", "grass", "near lakes", "gosling"),
    "owl": (2, "hoots", "mice", "in old trees", "owlet"),
    "frog": (4, "croaks", "flies", "in ponds", "tadpole"),
    "bee": (6, "buzzes", "nectar", "in hives", "larva"),
    "wolf": (4, "howls", "meat", "in forests", "pup"),
    "bear": (4, "growls", "berries and fish", "in caves", "cub"),
    "lion": (4, "roars", "meat", "on the savanna", "cub"),
    "goat": (4, "bleats", "leaves and grass", "on hills", "kid"),
    "pig": (4, "grunts", "roots and grain", "on farms", "piglet"),
    "snake": (0, "hisses", "mice and frogs", "under rocks", "snakelet"),
    "mouse": (4, "squeaks", "seeds and cheese", "in small holes", "pup"),
    "crow": (2, "caws", "seeds and insects", "in tall trees", "chick"),
    "fox": (4, "yelps", "mice and berries", "in dens", "cub"),
    "spider": (8, "makes no sound", "insects", "in webs", "spiderling"),
    "rabbit": (4, "makes little sound", "clover and carrots", "in burrows", "kit"),
    "seal": (0, "barks", "fish", "on cold coasts", "pup"),
    "swan": (2, "trumpets", "water plants", "on rivers", "cygnet"),
}

# name: (material, use)
OBJECTS: dict[str, tuple[str, str]] = {
    "lantern": ("brass", "giving light"),
    "kettle": ("copper", "boiling water"),
    "basket": ("willow", "carrying fruit"),
    "ladder": ("wood", "climbing"),
    "blanket": ("wool", "keeping warm"),
    "key": ("iron", "opening doors"),
    "bell": ("bronze", "calling people"),
    "kite": ("paper", "flying in the wind"),
    "boat": ("wood", "crossing water"),
    "map": ("paper", "finding the way"),
    "compass": ("brass", "finding north"),
    "flute": ("silver", "making music"),
    "teapot": ("clay", "making tea"),
    "mirror": ("glass", "seeing yourself"),
    "hammer": ("steel", "driving nails"),
    "needle": ("steel", "sewing"),
    "broom": ("straw", "sweeping floors"),
    "candle": ("wax", "giving light"),
    "bucket": ("tin", "carrying water"),
    "rope": ("hemp", "tying things"),
    "spoon": ("wood", "stirring soup"),
    "umbrella": ("cloth", "staying dry"),
    "whistle": ("tin", "calling dogs"),
    "chest": ("oak", "keeping treasure"),
}


@dataclass(frozen=True)
class Person:
    name: str
    she: bool
    age: int
    job: str
    home: str
    pet_kind: str
    pet_name: str
    food: str
    colour: str
    hobby: str
    friend: str

    @property
    def they(self) -> str:
        return "she" if self.she else "he"

    @property
    def their(self) -> str:
        return "her" if self.she else "his"

    @property
    def them(self) -> str:
        return "her" if self.she else "him"


@dataclass(frozen=True)
class Place:
    name: str
    kind: str
    region: str
    river: str
    landmark: str
    famous: str
    people: int
    weather: str


@dataclass(frozen=True)
class Animal:
    kind: str
    legs: int
    sound: str
    food: str
    home: str
    young: str


@dataclass(frozen=True)
class Thing:
    name: str
    material: str
    use: str
    colour: str
    owner: str


@dataclass(frozen=True)
class World:
    people: list[Person]
    places: list[Place]
    animals: list[Animal]
    things: list[Thing]

    def person(self, name: str) -> Person:
        return next(p for p in self.people if p.name == name)

    def place(self, name: str) -> Place:
        return next(p for p in self.places if p.name == name)


def article(word: str) -> str:
    """Returns `word` with its indefinite article."""
    return ("an " if word[0].lower() in "aeiou" else "a ") + word


def build_world() -> World:
    """Returns the world, which is the same on every call."""
    rng = random.Random(SEED)
    names = [(name, True) for name in SHE] + [(name, False) for name in HE]
    rng.shuffle(names)
    pet_names = rng.sample(PET_NAMES, len(names))
    # Friends are assigned in pairs, so that friendship is mutual.
    friends = {}
    for left, right in zip(names[::2], names[1::2]):
        friends[left[0]], friends[right[0]] = right[0], left[0]
    people = [
        Person(
            name=name,
            she=she,
            age=rng.randint(18, 79),
            job=rng.choice(JOBS),
            home=rng.choice(PLACES),
            pet_kind=rng.choice(PETS),
            pet_name=pet_name,
            food=rng.choice(FOODS),
            colour=rng.choice(COLOURS),
            hobby=rng.choice(HOBBIES),
            friend=friends[name],
        )
        for (name, she), pet_name in zip(names, pet_names)
    ]
    famous = rng.sample(FAMOUS, len(PLACES))
    places = [
        Place(
            name=name,
            kind=rng.choice(PLACE_KINDS),
            region=rng.choice(REGIONS),
            river=rng.choice(RIVERS),
            landmark=rng.choice(LANDMARKS),
            famous=known,
            people=rng.randint(2, 95) * 100,
            weather=rng.choice(WEATHER),
        )
        for name, known in zip(PLACES, famous)
    ]
    animals = [Animal(kind, *facts) for kind, facts in ANIMALS.items()]
    things = [
        Thing(name, material, use, rng.choice(COLOURS), rng.choice(names)[0])
        for name, (material, use) in OBJECTS.items()
    ]
    return World(people, places, animals, things)

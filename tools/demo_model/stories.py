"""Short stories and portraits in the small world, from small plot grammars."""

from __future__ import annotations

from random import Random

from world import Animal, Person, Place, Thing, World, article

OPENINGS = [
    "One {weather} morning in {place}, {hero} the {job} woke up early.",
    "It was a {weather} day in {place}, and {hero} the {job} was getting ready for work.",
    "{hero} the {job} lived in {place}, near {landmark}.",
    "In {place}, a {kind} in {region}, there lived {article_job} called {hero}.",
    "Late one {weather} afternoon, {hero} the {job} walked through {place}.",
    "Everybody in {place} knew {hero} the {job}.",
]
BACKGROUND = [
    "{They} had a {pet_kind} called {pet}, and the two of them went everywhere together.",
    "{Their} {pet_kind} {pet} was still asleep by the door.",
    "More than anything, {they} loved {hobby}.",
    "{They} had {food} for breakfast, {their} favourite food.",
    "{They} put on {their} {colour} coat, for {colour} was {their} favourite colour.",
    "{They} was {age} years old, and {they} knew every stone of the town.",
    "{place} was known for {famous}, and visitors came from far away.",
]
MEETINGS = [
    "On the road {they} met {friend}, {their} best friend.",
    "{friend} was waiting for {them} by {river}.",
    "{They} asked {their} friend {friend} for help.",
    "Soon {friend} came along with a basket of {friend_food}.",
]
# A plot is a list of beats. A beat is a list of texts for it.
PLOTS: dict[str, list[list[str]]] = {
    "lost": [
        [
            "But the {thing} was gone. \"Where is my {thing}?\" said {hero}.",
            "Then {they} saw that {their} {thing} was missing.",
            "When {they} looked for {their} {thing}, it was nowhere to be found.",
        ],
        [
            "{They} looked under the bed, behind the door and in the garden, but found nothing.",
            "{They} looked in every room and asked all the neighbours.",
            "{They} searched the whole house from top to bottom.",
        ],
        ["MEET"],
        [
            "\"Let us follow the footprints,\" said {friend}.",
            "\"I heard something near {landmark},\" said {friend}. \"Come with me.\"",
            "\"{pet} can help us,\" said {friend}. \"{pet} has a very good nose.\"",
        ],
        [
            "They followed a trail until they came to a {animal}. It was sitting on the {thing}!",
            "And there, by {river}, a little {animal} was playing with the {thing}.",
            "Behind a wall they found a {animal}, and next to it lay the {thing}.",
        ],
        [
            "The {animal} only wanted something to eat, so they gave it {animal_food}.",
            "{hero} laughed and gave the {animal} some {animal_food}.",
            "They made a trade: the {animal} got {animal_food}, and {hero} got the {thing} back.",
        ],
    ],
    "gift": [
        [
            "It was {friend}'s birthday, and {hero} wanted to make a special gift.",
            "{hero} wanted to give {friend} a present.",
            "\"Tomorrow is {friend}'s birthday,\" thought {hero}. \"What can I give?\"",
        ],
        [
            "{They} decided to make a {thing} out of {material}.",
            "{They} took a piece of {material} and began to make a {thing}.",
            "{They} had some {material} left, just enough for a {thing}.",
        ],
        [
            "The work was hard, and it took {count} days.",
            "{They} worked for {count} days and {count} nights.",
            "First it broke, and {they} had to start again.",
        ],
        [
            "At last the {thing} was ready, and {they} painted it {friend_colour}.",
            "When it was done, the {thing} shone in the light.",
            "{They} tied a {friend_colour} ribbon around the {thing}.",
        ],
        [
            "\"For me?\" said {friend}. \"It is the best {thing} I have ever seen!\"",
            "{friend} was so happy that {friend_they} danced around the room.",
            "\"Thank you, {hero},\" said {friend}. \"I will use it for {use} every day.\"",
        ],
    ],
    "storm": [
        [
            "Suddenly dark clouds came over the hills, and a storm began.",
            "In the evening the wind grew stronger and stronger.",
            "Then it began to rain, and the rain did not stop.",
        ],
        [
            "The water of {river} rose higher and higher.",
            "A tree fell across the road, and nobody could pass.",
            "All the lights in {place} went out.",
        ],
        [
            "Somewhere in the dark a {animal} was crying for help.",
            "{hero} heard a frightened {animal} outside.",
            "A small {animal} was caught between two rocks.",
        ],
        ["MEET"],
        [
            "They took the {thing} and went out into the storm.",
            "\"Bring the {thing}!\" called {hero}. \"We have no time to lose.\"",
            "With the {thing} in {their} hand, {hero} went first.",
        ],
        [
            "Together they pulled the {animal} to safety and carried it home.",
            "Step by step they came closer, until the {animal} was safe.",
            "The {animal} was wet and cold, so they wrapped it in a blanket.",
        ],
        [
            "In the morning the sun came out, and the {animal} ran back to its home.",
            "The next day the storm was over, and the birds sang again.",
            "From that day on, the {animal} visited them every week.",
        ],
    ],
    "journey": [
        [
            "One day a letter came from {far}. \"Please come and bring the {thing},\" it said.",
            "{hero} had always wanted to see {far}, which was known for {far_famous}.",
            "{friend} had moved to {far}, and {hero} wanted to visit.",
        ],
        [
            "{They} packed {their} bag: some bread, a bottle of water and the {thing}.",
            "{They} took the {thing}, kissed {pet} and closed the door.",
            "{They} left {pet} with a neighbour and set off with the {thing}.",
        ],
        [
            "{They} walked for {count} days, over hills and across {river}.",
            "The way to {far} led through {far_region}, and it took {count} days.",
            "On the first day {they} crossed {river}, and on the second day {they} slept in a barn.",
        ],
        [
            "In the forest {they} met a {animal}. \"Which way to {far}?\" {they} asked.",
            "A {animal} sat by the road and looked at {them}.",
            "At night {they} heard a {animal} and was a little afraid.",
        ],
        [
            "The {animal} did not answer, but it walked ahead and showed the way.",
            "{They} shared {their} bread with the {animal}, and they became friends.",
            "{hero} gave it {animal_food}, and it stayed with {them} until the end of the road.",
        ],
        [
            "At last {they} saw {far_landmark}. {They} had come to {far}.",
            "When {they} came to {far}, everybody cheered.",
            "{far} was even more beautiful than {they} had thought.",
        ],
    ],
    "contest": [
        [
            "Every year there was a great contest in {place}: who could make the best {thing}?",
            "\"Who has the finest {thing} in {region}?\" asked the mayor of {place}.",
            "The mayor promised {count} gold coins for the best {thing}.",
        ],
        [
            "{hero} wanted to win, and so did {friend}.",
            "{friend} laughed. \"I will win,\" {friend_they} said. \"I always win.\"",
            "{hero} and {friend} both entered, and each worked in secret.",
        ],
        [
            "But in the night a {animal} came and broke {friend}'s {thing}.",
            "But on the last day {friend}'s {thing} fell and broke.",
            "Then {friend} became ill and could not finish.",
        ],
        [
            "{hero} thought about it. Then {they} went to {friend} and said, \"I will help you.\"",
            "{hero} could have won easily, but {they} did not want to win that way.",
            "\"We can build one together,\" said {hero}, and {friend} smiled.",
        ],
        [
            "They worked until the sun rose, and made one {thing} with both their names on it.",
            "Side by side they worked, and the {thing} became better than any before.",
            "They used the best {material} they could find.",
        ],
        [
            "The mayor gave the prize to both of them, and they bought {food} for everyone.",
            "They won, and they shared the coins with the whole town.",
            "They came second, but they did not mind at all.",
        ],
    ],
    "secret": [
        [
            "While cleaning the attic, {they} found an old {thing} in a box.",
            "Under {landmark} there was a small door, and behind it lay a {thing}.",
            "A {animal} dug a hole in the garden, and in the hole was a {thing}.",
        ],
        [
            "There was a note on it: \"Take me to {far}.\"",
            "Some words were written on the {material}: \"Look where the {animal} sleeps.\"",
            "It was made of {material}, and it was very old.",
        ],
        ["MEET"],
        [
            "\"I know this {thing},\" said {friend}. \"My grandmother told me about it.\"",
            "{friend} looked at it for a long time and said nothing.",
            "\"It must be worth a fortune,\" whispered {friend}.",
        ],
        [
            "They asked the librarian, who opened a big book and read for {count} hours.",
            "They waited until midnight and went to the old well by {river}.",
            "They followed the signs from house to house, from tree to tree.",
        ],
        [
            "In the end they found a chest full of {far_famous_thing}, enough for everyone in {place}.",
            "And what did they find? A letter from {hero}'s great-grandfather, and a song.",
            "At the end of the trail there was no gold, only the most beautiful view of {region}.",
        ],
    ],
}
ENDINGS = [
    "That night {hero} slept well, and {pet} slept at {their} feet.",
    "And so the day ended well in {place}.",
    "\"What a day!\" said {hero}, and everyone laughed.",
    "They ate {food} together and talked until the stars came out.",
    "{hero} never forgot that day.",
    "From then on, {hero} and {friend} were even better friends than before.",
    "And if you go to {place} today, people will still tell you about it.",
]
COUNTS = ["two", "three", "four", "five", "six", "seven"]


def story_values(rng: Random, world: World, hero: Person, thing: Thing) -> dict[str, str]:
    """Returns the values of one story's placeholders."""
    place = world.place(hero.home)
    friend = world.person(hero.friend)
    far = rng.choice([p for p in world.places if p.name != place.name])
    animal = rng.choice(world.animals)
    return {
        "hero": hero.name, "job": hero.job, "article_job": article(hero.job),
        "age": str(hero.age), "place": place.name, "kind": place.kind,
        "region": place.region, "landmark": place.landmark, "river": place.river,
        "famous": place.famous, "weather": place.weather,
        "they": hero.they, "They": hero.they.capitalize(),
        "their": hero.their, "Their": hero.their.capitalize(), "them": hero.them,
        "pet": hero.pet_name, "pet_kind": hero.pet_kind, "food": hero.food,
        "hobby": hero.hobby, "colour": hero.colour,
        "friend": friend.name, "friend_they": friend.they, "friend_food": friend.food,
        "friend_colour": friend.colour, "thing": thing.name, "material": thing.material,
        "use": thing.use, "animal": animal.kind, "animal_food": animal.food,
        "far": far.name, "far_region": far.region,
        "far_landmark": far.landmark, "far_famous": far.famous,
        "far_famous_thing": far.famous.removeprefix("its "),
        "count": rng.choice(COUNTS),
    }  # fmt: skip


def story(rng: Random, world: World, hero: Person, thing: Thing, plot: str) -> str:
    """Returns a story of 80 to 200 words as a single paragraph."""
    beats = [rng.choice(OPENINGS), *rng.sample(BACKGROUND, rng.randint(1, 2))]
    for ways in PLOTS[plot]:
        beats.append(rng.choice(MEETINGS if ways == ["MEET"] else ways))
    beats.append(rng.choice(ENDINGS))
    return " ".join(beats).format(**story_values(rng, world, hero, thing))


def portrait(rng: Random, person: Person) -> str:
    """Returns a few true sentences about a person, in random order."""
    they = person.they.capitalize()
    lines = [
        f"{they} is {person.age} years old.",
        f"{they} has a {person.pet_kind} called {person.pet_name}.",
        f"{they} likes {person.food} best.",
        f"{they} loves {person.hobby}.",
        f"{person.their.capitalize()} favourite colour is {person.colour}.",
        f"{person.their.capitalize()} best friend is {person.friend}.",
    ]
    chosen = rng.sample(lines, rng.randint(3, len(lines)))
    return " ".join([f"{person.name} is {article(person.job)} from {person.home}.", *chosen])


def place_portrait(rng: Random, place: Place) -> str:
    """Returns a few true sentences about a place, in random order."""
    lines = [
        f"It lies on {place.river}.",
        f"It is known for {place.famous}.",
        f"About {place.people} people live there.",
        f"It has {place.landmark}.",
        f"The weather is mostly {place.weather}.",
    ]
    chosen = rng.sample(lines, rng.randint(3, len(lines)))
    return " ".join([f"{place.name} is {article(place.kind)} in {place.region}.", *chosen])


def animal_portrait(rng: Random, animal: Animal) -> str:
    """Returns a few true sentences about an animal, in random order."""
    name = article(animal.kind).capitalize()
    lines = [
        f"It has {animal.legs} legs.",
        f"It {animal.sound}.",
        f"It eats {animal.food}.",
        f"It lives {animal.home}.",
    ]
    rng.shuffle(lines)
    return " ".join([f"{name} is an animal.", *lines, f"The young one is called {article(animal.young)}."])

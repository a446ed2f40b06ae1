"""Everyday objects and what holds of them: the table behind twenty questions.

Each line names a thing and the traits that it has; a trait with ``~`` before it depends on the case, so that a fair
answer is that one does not know. What is not listed does not hold.
"""

from collections.abc import Mapping

from manyturn.envs.talk.guessing.trait_table import Table, Trait

TRAITS = (
    Trait("alive", "Is it alive?", ("alive", "living", "a living thing")),
    Trait("animal", "Is it an animal?", ("an animal", "animal", "creature")),
    Trait("plant", "Is it a plant?", ("a plant", "plant")),
    Trait("eaten", "Can you eat it?", ("eat", "eaten", "edible", "food")),
    Trait("house", "Is it found in a house?", ("house", "home", "indoors", "household")),
    Trait("kitchen", "Is it used in the kitchen?", ("kitchen", "cooking")),
    Trait("large", "Is it bigger than a person?", ("bigger than a person", "larger than a person", "large", "big")),
    Trait("hand", "Can you hold it in one hand?", ("one hand", "small", "pocket")),
    Trait("metal", "Is it mostly metal?", ("metal", "steel", "iron")),
    Trait("wood", "Is it mostly wood?", ("wood", "wooden")),
    Trait("cloth", "Is it mostly cloth?", ("cloth", "fabric", "textile")),
    Trait("electric", "Does it need electricity?", ("electricity", "electric", "electrical", "power")),
    Trait("flies", "Can it fly?", ("fly", "flies", "flying")),
    Trait("water", "Is it found in water?", ("water", "sea", "swim", "swims")),
    Trait("wheels", "Does it have wheels?", ("wheels", "wheel")),
    Trait("worn", "Is it worn on the body?", ("worn", "wear", "clothing")),
    Trait("sound", "Does it make sounds?", ("sound", "sounds", "noise", "loud")),
    Trait("tool", "Is it a tool for work?", ("a tool", "tool", "work")),
    Trait("play", "Is it used for play or sport?", ("play", "sport", "toy", "game")),
    Trait("music", "Does it make music?", ("music", "musical", "instrument")),
    Trait("legs", "Does it have legs?", ("legs", "leg", "feet")),
    Trait("round", "Is it round?", ("round", "ball-shaped", "circular")),
    Trait("harm", "Can it hurt people badly?", ("hurt", "dangerous", "harm", "danger")),
    Trait("soft", "Is it soft?", ("soft",)),
    Trait("writing", "Is it for reading or writing?", ("reading", "writing", "read", "write")),
    Trait("light", "Does it give light?", ("light", "shine", "shines", "glow")),
    Trait("coat", "Does it have fur or feathers?", ("fur", "feathers", "hair", "furry")),
    Trait("farm", "Is it found on a farm?", ("farm", "farmer")),
    Trait("tree", "Does it grow on a tree?", ("a tree", "tree", "trees")),
    Trait("carries", "Does it carry people?", ("carry people", "ride", "vehicle", "transport", "travel")),
)

_THINGS = """
ant: alive animal hand legs
bee: alive animal hand flies sound legs ~farm
butterfly: alive animal hand flies legs
spider: alive animal hand legs ~house ~harm
cat: alive animal house sound legs soft coat ~farm
dog: alive animal house sound legs coat ~farm ~harm
mouse: alive animal house hand legs soft coat ~farm
rabbit: alive animal legs soft coat ~house ~eaten farm
horse: alive animal large sound legs coat farm carries
cow: alive animal large sound legs coat farm ~eaten
sheep: alive animal sound legs soft coat farm ~eaten
goat: alive animal sound legs coat farm
pig: alive animal sound legs farm ~eaten
hen: alive animal sound legs coat farm ~flies ~eaten
duck: alive animal flies water sound legs coat farm
eagle: alive animal flies legs coat sound
owl: alive animal flies legs coat sound soft
penguin: alive animal water legs coat sound
bear: alive animal large legs coat harm sound
lion: alive animal large legs coat harm sound ~soft
wolf: alive animal legs coat harm sound
elephant: alive animal large legs sound ~carries ~harm
camel: alive animal large legs coat carries
snake: alive animal harm ~water
frog: alive animal hand water legs sound
turtle: alive animal water legs
shark: alive animal large water harm
whale: alive animal large water sound
salmon: alive animal water eaten
crab: alive animal water legs ~eaten hand
snail: alive animal hand soft
fox: alive animal legs coat sound
oak: alive plant large wood
rose: alive plant hand ~harm
cactus: alive plant ~house ~harm ~large
grass: alive plant farm soft
wheat: alive plant farm ~eaten
moss: alive plant soft hand
apple: eaten hand round tree ~kitchen farm
pear: eaten hand tree soft farm
cherry: eaten hand round tree soft
lemon: eaten hand tree kitchen
orange: eaten hand round tree soft
banana: eaten hand soft tree house
walnut: eaten hand round tree
potato: eaten hand farm kitchen
carrot: eaten hand farm
onion: eaten hand round kitchen farm
tomato: eaten hand round soft farm kitchen
pumpkin: eaten round farm ~light
bread: eaten soft house kitchen
cheese: eaten kitchen farm ~soft house
egg: eaten hand kitchen farm
butter: eaten soft kitchen house farm hand
rice: eaten kitchen house
honey: eaten soft house
cake: eaten soft round house
soup: eaten kitchen house water
pancake: eaten soft round kitchen
spoon: house kitchen hand metal
fork: house kitchen hand metal ~harm
knife: house kitchen hand metal tool harm
pan: house kitchen metal round
kettle: house kitchen metal sound ~electric
oven: house kitchen metal electric ~harm
fridge: house kitchen metal electric ~large sound
plate: house kitchen round
cup: house kitchen hand round
table: house wood legs ~kitchen
chair: house wood legs
bed: house large soft wood legs
sofa: house large soft cloth legs
bookshelf: house wood large writing
door: house wood large
ladder: wood tool large ~house
pillow: house soft cloth
blanket: house soft cloth large
curtain: house cloth large
carpet: house cloth soft large
towel: house cloth soft hand
lamp: house electric light
candle: house hand light
torch: hand electric light tool
sun: light large round ~harm
moon: light large round
star: light large
fire: light harm ~house sound
mirror: house ~round
clock: house round sound ~electric
watch: hand worn metal ~electric
ring: hand worn metal round
hat: worn cloth hand
coat: worn cloth soft
glove: worn cloth hand soft
shoe: worn ~cloth
scarf: worn cloth soft hand
belt: worn hand
boot: worn tool
helmet: worn play round
glasses: worn hand writing
umbrella: hand cloth ~metal
hammer: tool hand metal wood ~harm
saw: tool hand metal harm
axe: tool metal wood harm
spade: tool metal wood farm
nail: hand metal ~tool
screwdriver: tool hand metal
drill: tool hand metal electric sound harm
scissors: tool hand metal ~harm house
rope: tool ~cloth
bucket: tool house water farm round
broom: tool house wood
needle: tool hand metal house ~harm
wheelbarrow: tool metal wheels farm
plough: tool metal farm large
tractor: metal wheels large sound farm carries tool
car: metal wheels large sound carries harm ~electric
bus: metal wheels large sound carries
lorry: metal wheels large sound tool carries harm
train: metal wheels large sound carries electric
tram: metal wheels large carries electric sound light
bicycle: metal wheels carries play
motorbike: metal wheels sound carries harm
skateboard: wood wheels carries play
cart: wood wheels farm carries
boat: water carries large wood
ship: water carries large metal sound
submarine: water carries large metal harm
canoe: water carries wood play
aeroplane: flies carries large metal sound wheels
helicopter: flies carries large metal sound
balloon: flies round play ~carries
kite: flies play cloth
rocket: flies large metal harm sound ~carries
ball: play round hand
doll: play hand soft house
dice: play hand
chess: play wood house
puzzle: play house
swing: play wood
sledge: play wood carries
racket: play hand
piano: music sound house large wood
guitar: music sound wood
violin: music sound wood hand
drum: music sound round
flute: music sound hand
trumpet: music sound hand metal
bell: sound metal ~music round
radio: sound electric house ~music
telephone: sound electric hand house
television: sound electric house light
computer: electric house writing light
camera: hand electric
book: writing hand house
newspaper: writing house
pencil: writing hand wood
pen: writing hand
letter: writing hand
map: writing hand tool
stone: hand ~harm
cloud: large flies soft
river: water large sound
snow: soft water
""".strip()


def _row(words: str) -> Mapping[str, bool | None]:
    traits = dict.fromkeys((trait.name for trait in TRAITS), False)
    row: dict[str, bool | None] = dict(traits)
    for word in words.split():
        name = word.removeprefix("~")
        if name not in row:
            raise ValueError(f"no trait {name!r}")
        row[name] = None if word.startswith("~") else True
    return row


THINGS = Table(TRAITS, {name: _row(words) for name, words in (line.split(": ") for line in _THINGS.splitlines())})

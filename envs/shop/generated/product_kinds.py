"""Goods of a generated shop: 24 kinds in five departments, with the words for them.

Within a kind no name, attribute or value of an option passes for another under WebShop's fuzzy comparison, so that the
lenient reward is exact here; a test checks this.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_COMMON = "handmade, recyclable, award winning, gift ready, locally sourced, limited edition"

_DEPARTMENTS = {
    "fashion": "machine washable, quick drying, water resistant, wrinkle free, lightweight, hand stitched, breathable, "
    "stain resistant, slim fitting, vegan friendly, fleece lined, hypoallergenic",
    "home": "dust repellent, space saving, kid safe, fade resistant, scratch proof, self assembled, odor free, "
    "pet friendly, heavy duty, foldable, wipe clean, rustproof",
    "grocery": "gluten free, sugarless, low sodium, organic, non dairy, kosher, gmo tested, high fiber, fair trade, "
    "keto friendly, without nuts, preservative free",
    "beauty": "paraben free, cruelty free, unscented, oilless, long lasting, dermatologist tested, sulfate reduced, "
    "travel sized, fast absorbing, non greasy, alcohol free, plant based",
    "electronics": "rechargeable, bluetooth enabled, noise cancelling, shockproof, fast charging, waterproof, "
    "voice controlled, backlit, plug and play, ultra thin, wall mountable, dual band",
}

_AXES = {
    "color": "red, blue, green, black, white, yellow, purple, orange, pink, brown, gray, teal",
    "size": "xs, small, medium, large, xl, xxl",
    "shoe size": "6, 7, 8, 9, 10, 11, 12",
    "material": "cotton, wool, linen, leather, bamboo, oak, marble, acrylic",
    "shape": "round, square, oval, hexagon, heart",
    "bed": "twin, full, queen, king",
    "length": "short, regular, tall, extended",
    "flavor": "vanilla, chocolate, strawberry, caramel, banana, coconut, hazelnut, lemon, cherry, almond",
    "scent": "lavender, rose, citrus, jasmine, vetiver, cedar, musk, unperfumed",
    "pack": "single, double, triple, family, jumbo",
    "finish": "matte, glossy, satin, pearl",
    "grind": "coarse, fine, whole bean",
    "storage": "32gb, 64gb, 128gb, 256gb, 512gb",
    "layout": "ansi, iso, ergo, numpad",
    "fit": "in ear, on ear, over ear",
}

# Name; names in titles; categories below the department; axes of options; median price; attributes of its own.
_TABLE = """
running shoe; sneaker, trainer; footwear > sport shoes > running; shoe size, color; 60; cushioned, wide toed, arch \
supporting, low cut, trail ready, reflective, slip resistant, knitted, ankle padded, featherlight, carbon plated, \
laceless
rain jacket; raincoat, windbreaker; outerwear > coats > rainwear; size, color, length; 55; hooded, packable, seam \
sealed, belted, two pocketed, mesh lined, zip vented, drawstring, snap fastened, oversized, long sleeved, windproof
sweater; pullover, cardigan; knitwear > tops > warm tops; size, color, material; 40; crew necked, cable patterned, \
ribbed, polo collared, striped, turtle necked, buttoned, loose hanging, soft brushed, cropped, elbow patched, thick \
yarned
handbag; tote, shoulder bag; bags > carriers > everyday bags; color, material; 45; magnetic, quilted, tasseled, \
laptop fitting, multi pocketed, crossbody, structured, zippered, chain strapped, embroidered, convertible, rfid \
blocking
wristwatch; chronograph, dress watch; jewelry > watches > wrist; color, finish; 90; solar powered, shatterproof, self \
winding, luminous, date showing, roman numbered, swiss made, minimalist, skeleton dialed, diver rated, titanium \
cased, moon phased
table lamp; desk lamp, reading lamp; lighting > lamps > table lighting; color, shape, finish; 35; dimmable, touch \
controlled, flicker reduced, swing armed, clip mounted, warm lit, remote operated, battery powered, glare shielding, \
energy efficient, timer equipped, brass plated
rug; carpet, runner mat; floor > textiles > floor coverings; color, shape, size; 80; hand knotted, deep pile, non \
shedding, jute woven, reversible, washable backed, persian styled, felt padded, braided, tufted, outdoor rated, \
shaggy
sheet set; bed linen, bedding set; bedroom > linens > sheets; bed, color, material; 50; deep pocketed, cooling, \
sateen, percale, moisture wicking, thermal, pre washed, double stitched, crisp, pill resistant, pleated, bamboo \
blended
bookcase; bookshelf, shelving unit; storage furniture > living room > shelves; color, material; 110; five tiered, \
corner fitting, glass doored, floating, wheeled, ladder styled, industrial, lockable, adjustable, open backed, \
veneered, anti tipping
curtain; drape, window panel; windows > hangings > draperies; color, length, material; 30; blackout, sheer, grommet \
topped, sound dampening, insulated, rod pocketed, floral, geometric, crushed velvet, tie backed, light filtering, \
lacy
herbal tea; tisane, tea infusion; drinks > teas > caffeine alternatives; flavor, pack; 14; calming, loose leafed, \
hand picked, sleep aiding, digestion helping, spiced, iced ready, biodegradable bagged, floral noted, detoxifying, \
steamed, honeyed
coffee; espresso blend, coffee roast; hot drinks > coffees > roasted beans; grind, flavor, pack; 18; dark roasted, \
medium bodied, single origin, low acid, barista grade, shade grown, small batched, nitrogen sealed, half caffeinated, \
cold brewable, smoky, volcanic grown
protein bar; energy bar, meal bar; nutrition > sport food > bars; flavor, pack; 22; whey enriched, crunchy, chewy, \
collagen boosted, oat based, low carb, vitamin fortified, layered, post workout, chia seeded, baked, soy crisped
cookie; biscuit, shortbread; bakery > sweets > sweet baking; flavor, pack; 10; buttery, double dipped, soft baked, \
cream filled, wafer thin, bite sized, oven fresh, thick cut, rainbow sprinkled, stone ground, tin boxed, sandwich \
styled
popcorn; kettle corn, puffed corn; snacks > salty > corn snacks; flavor, pack; 9; air popped, sea salted, \
microwaveable, lightly sweetened, cheesy, hull reduced, chili dusted, butter coated, mushroom shaped, truffle \
seasoned, sharing sized, triple drizzled
shampoo; hair wash, hair cleanser; hair > washing > shampoos; scent, pack; 16; volumizing, anti dandruff, color \
protecting, curl defining, scalp soothing, keratin infused, frizz taming, baby gentle, deep cleansing, moisturizing, \
argan enriched, daily usable
face cream; facial lotion, moisturizer; skin > facial > creams; scent, pack; 28; anti aging, spf protecting, retinol \
powered, brightening, acne fighting, night time, collagen lifting, overnight repairing, aloe soothing, pore \
minimizing, tinted, redness calming
perfume; cologne, eau de parfum; fragrance > fine scents > sprays; scent, finish; 65; spray bottled, refillable, \
woody based, gender neutral, evening worn, french crafted, layering friendly, concentrated, summery, roll on, gift \
boxed, vintage inspired
lipstick; lip color, lip stain; makeup > lips > lip makeup; color, finish, pack; 15; smudge proof, hydrating, vitamin \
infused, highly pigmented, plumping, transfer resistant, creamy, buildable, kiss proof, twist up, velvet feeling, \
shimmering
headphone; headset, earphone; audio > listening > personal audio; color, fit; 75; wireless, hi res, bass boosted, \
gesture controlled, mic equipped, sweat resistant, gaming tuned, memory foamed, braided corded, low latency, studio \
graded, open backed
phone case; phone cover, phone bumper; mobile > phone gear > protection; color, material, finish; 20; card holding, \
military graded, kickstand fitted, ring holding, transparent, anti yellowing, magsafe ready, drop tested, textured, \
lanyard looped, screen guarding, camera covering
keyboard; typing board, keypad; computers > input > typing; layout, color; 70; mechanical, hot swappable, spill \
proof, split, silent switched, macro programmable, detachable corded, compact, rgb lit, wrist rested, aluminum \
framed, multi device
speaker; soundbar, boombox; sound > loudspeakers > portable sound; color, pack; 85; stereo pairing, subwoofer driven, \
floating rated, party lit, multi room, karaoke ready, retro styled, solar charged, long ranged, spotify linked, \
tripod ready, radio tuning
memory card; flash drive, pen drive; data > storage media > flash memory; storage, color; 25; high speed, temperature \
proof, x ray proof, keyring looped, password protected, video graded, metal cased, data recovering, dashcam rated, \
adapter bundled, capless, drone ready"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of goods.

    Args:
        name: such as ``table lamp``; two products of a kind are of one type.
        heads: the names that titles use, ``name`` first.
        department: the widest category.
        path: four categories from wide to narrow.
        axes: option name -> all values that a product may offer.
        price: the median, in dollars.
        attributes: 30 of them; 18 are shared with other kinds.
    """

    name: str
    heads: tuple[str, ...]
    department: str
    path: tuple[str, ...]
    axes: Mapping[str, tuple[str, ...]]
    price: float
    attributes: tuple[str, ...]


def _split(text: str, mark: str = ",") -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(mark))


def _kind(line: str, department: str) -> Kind:
    name, heads, path, axes, price, own = _split(line, ";")
    attributes = (*_split(_COMMON), *_split(_DEPARTMENTS[department]), *_split(own))
    return Kind(
        name=name,
        heads=(name, *_split(heads)),
        department=department,
        path=(department, *_split(path, ">")),
        axes={axis: _split(_AXES[axis]) for axis in _split(axes)},
        price=float(price),
        attributes=attributes,
    )


_SIZES = {"fashion": 5, "home": 5, "grocery": 5, "beauty": 4, "electronics": 5}
KINDS = tuple(map(_kind, _TABLE.strip().splitlines(), [name for name, size in _SIZES.items() for _ in range(size)]))
NAMES = {head: kind.heads for kind in KINDS for head in kind.heads}  # name -> all names of its kind


def title_name(title: str) -> str:
    """The name that a title calls its product by; before it stands the brand, after it attributes.

    >>> title_name("kesso desk lamp, dimmable")
    'desk lamp'
    """
    return title.partition(",")[0].partition(" ")[2]


def type_label(title: str) -> tuple[str, ...]:
    """The name of the kind that a title is of: what the reward compares in place of a title's nouns.

    >>> type_label("kesso desk lamp, dimmable")
    ('table lamp',)
    """
    return NAMES[title_name(title)][:1]

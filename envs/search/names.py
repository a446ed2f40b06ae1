"""Names of what is made up; no two of one world are the same."""

from collections.abc import Callable, Sequence

from manyturn.envs.contract.stable_random import Draws

_GIVEN = """
Ada Alma Anselm Armin Astrid Balint Benno Berta Bruno Carla Casimir Celia Conrad Cosima Dagmar Delia Dora Edgar Edith
Elias Elma Emil Enno Erna Esther Ewald Felix Flora Franka Georg Gerda Gilbert Greta Hanno Hedda Henrik Hilda Hugo Ida
Ilse Ines Ingmar Irma Isak Ivo Jakob Jarla Joris Jonna Karl Klara Konrad Lea Leif Lena Linus Lorenz Luisa Magda Malte
Marius Marta Matilda Milan Mina Nadja Nils Nora Olga Oskar Otto Paula Piet Ragna Rena Rolf Rosa Runa Selma Sigrid Silas
Sonja Stella Sven Tekla Theo Tilda Tobias Ulla Ursel Vera Viktor Wanda Wenzel Wilma Xaver Yrsa Zeno Zita""".split()
_STARTS = """
Ab Bal Bren Cal Chem Dor Drav Ek Fal Fen Gar Gress Hal Hol Ist Jar Kel Kor Lam Lin Mar Mol Nem Nor Ost Pal Pel Quar Rav
Ros Sel Skar Tam Torv Ul Van Vel Wes Yar Zel""".split()
_MIDDLES = "a an ar e el en er i il in o ol on or u un".split()
_TOWNS = "burg dale ford gate ham holm mar mouth stad ton vik wick".split()
_SURNAMES = "bek berg dahl dorn feld gren hart kamp lund mann nik ric sen stam strand voss".split()
_RIVERS = "ba da ne ra sse va we za".split()
_QUALITIES = """
Amber Ashen Broken Crimson Distant Drowned Empty Fallen Forgotten Frozen Gilded Glass Golden Hidden Hollow Iron Ivory
Lonely Lost Marble Midnight Moonlit Nameless Paper Patient Quiet Restless Sacred Scarlet Secret Seventh Shattered Silent
Silver Sleeping Stolen Stubborn Sunken Tangled Velvet Wandering Weeping Winter Wooden""".split()
_MATTERS = """
Anchor Bell Bridge Candle Caravan Castle Cloak Compass Crown Daughter Ferry Fountain Garden Gate Harvest Heron Horizon
Island Key Ladder Lantern Letter Lighthouse Mirror Mill Nightingale Oath Orchard Palace Pilgrim Raven Rose Sailor Shadow
Shepherd Staircase Stranger Swan Tower Traveller Village Voyage Wedding Well Widow Window""".split()


class Names:
    """Fresh names, drawn in turn.

    Args:
        draws: where they come from.
    """

    def __init__(self, draws: Draws):
        self._draws = draws
        self._taken: set[str] = set()

    def person(self) -> str:
        return self._fresh(lambda: f"{self._of(_GIVEN)} {self._stem()}{self._of(_SURNAMES)}")

    def town(self) -> str:
        return self._fresh(lambda: self._stem() + self._of(_TOWNS))

    def river(self) -> str:
        return self._fresh(lambda: self._stem() + self._of(_RIVERS))

    def mountain(self) -> str:
        return self._fresh(lambda: f"Mount {self._stem()}{self._of(_MIDDLES)}k")

    def institute(self, sort: str) -> str:
        return self._fresh(lambda: f"{self._stem()}{self._of(_SURNAMES)} {sort}")

    def work(self) -> str:
        return self._fresh(lambda: f"The {self._of(_QUALITIES)} {self._of(_MATTERS)}")

    def _stem(self) -> str:
        return self._of(_STARTS) + self._of(_MIDDLES)

    def _of(self, words: Sequence[str]) -> str:
        return self._draws.pick(words)

    def _fresh(self, draw: Callable[[], str]) -> str:
        while (name := draw()) in self._taken:
            pass
        self._taken.add(name)
        return name

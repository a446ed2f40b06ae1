"""Datasets of reasoning-gym that may score a model's text, and the reasons against the others.

Source: the package reasoning-gym 0.1.25. Each scorer named here was read, and is tried on hostile answers by a test.
"""

from manyturn.envs.contract.near_names import near_names

VERSION = "0.1.25"  # of whose scorers this file speaks

READ = frozenset(
    """
    ab aiw arc_1d base_conversion basic_arithmetic binary_alternation caesar_cipher calendar_arithmetic chain_sum
    circuit_logic color_cube_rotation count_bits count_primes course_schedule cryptarithm decimal_arithmetic
    decimal_chain_sum dice emoji_mystery family_relationships fraction_simplification gcd gsm_symbolic
    jugs kakurasu knights_knaves largest_island lcm leg_counting letter_counting
    letter_jumble mahjong_puzzle manipulate_matrix maze mini_sudoku modulo_grid needle_haystack number_filtering
    number_format number_sequence palindrome_generation palindrome_partitioning path_star products
    rotate_matrix rotten_oranges self_reference sentence_reordering shortest_path simple_equations simple_geometry
    spell_backward string_manipulation string_splitting string_synthesis survo syllogism time_intervals
    word_sequence_reversal word_sorting
    """.split()
)

_EVAL = "its scorer runs the answer as Python, by eval"
_SYMPY = "its scorer gives the answer to sympy's parser, which runs it as Python"
_SETS = "it goes through sets in an order that is another one in each process, and so are its questions"
_NO_ANSWER = "it has no answer of its own that a test could try its scorer with"
_WHY = {
    "binary_matrix": _EVAL,
    "n_queens": _EVAL,
    "spiral_matrix": _EVAL,
    "string_insertion": _EVAL,
    "countdown": _SYMPY,
    "intermediate_integration": _SYMPY,
    "polynomial_multiplication": _SYMPY,
    "puzzle24": _SYMPY,
    "simple_integration": _SYMPY,
    "codeio": "it runs programs that come as data",
    "bitwise_arithmetic": "its scorer runs the problem as Python, by eval",
    "coin_flip": "its scorer works out a number such as 1e999999999 in full, which never ends",
    "rubiks_cube": "its scorer writes out as many moves as the answer says, which fills the memory",
    "rush_hour": "its scorer makes as many moves as the answer says, which never ends",
    "complex_arithmetic": "its scorer pays 1 for the answer nan",
    "number_sorting": "its scorer pays 1 for a list of NaN",
    "game_of_life_halting": "its scorer pays 1 for any text where the answer is True",
    "game_of_life": "its scorer raises on some answers",
    "prime_factorization": "its scorer raises on an answer that is no number",
    "pool_matrix": "it sets the random state of the whole process",
    "list_functions": "it draws from the random state of the whole process",
    "isomorphic_strings": _SETS,
    "knight_swap": _SETS,
    "ransom_note": _SETS,
    "word_ladder": _SETS,
    "boxnet": _NO_ANSWER,
    "graph_color": _NO_ANSWER,
    "propositional_logic": _NO_ANSWER,
}


def refusal(name: str) -> str | None:
    """The reason for which a dataset is not played, with what to do; None if it is.

    >>> refusal("countdown")
    "countdown is not played: its scorer gives the answer to sympy's parser, which runs it as Python"
    """
    if name in READ:
        return None
    if name in _WHY:
        return f"{name} is not played: {_WHY[name]}"
    near = near_names(name, sorted(READ), n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else f": there are {', '.join(sorted(READ))}"
    return f"no dataset of reasoning-gym by the name {name!r} has had its scorer read{hint}"

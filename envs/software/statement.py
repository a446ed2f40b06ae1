"""Statement of a fault for an agent. The text is synthetic: templates, and the errors of failing tests."""

from collections.abc import Sequence

from manyturn.envs.software.libraries import Library


def statement(
    library: Library, difficulty: str, fail_to_pass: Sequence[str], symptoms: Sequence[tuple[str, str]]
) -> str:
    """The text. An easy task names a failing test, the others only what was seen when tests failed.

    Args:
        symptoms: for each fault a failing test's id, and what its error said.
    """
    code = ", ".join(library.code)
    seen = "\n\n".join(_indented(message) for _, message in symptoms if message)
    return "\n\n".join(
        part
        for part in (
            f"The workspace contains the Python library {library.name} {library.version} and its tests.",
            _what(difficulty, fail_to_pass, symptoms),
            f"Observed:\n\n{seen}" if seen else "",
            f"Fix the library's own code ({code}). To run tests: python3 -m pytest FILE",
        )
        if part
    )


def _what(difficulty: str, fail_to_pass: Sequence[str], symptoms: Sequence[tuple[str, str]]) -> str:
    if len(symptoms) > 1:
        return f"There are {len(symptoms)} bugs in its code, in different functions. Each makes some of its tests fail."
    if difficulty != "easy":
        return "A bug in its code makes some of its tests fail."
    if len(fail_to_pass) == 1:
        return f"A bug in its code makes one of its tests fail:\n\n{_indented(fail_to_pass[0])}"
    number = len(fail_to_pass)
    return f"A bug in its code makes {number} of its tests fail, such as\n\n{_indented(symptoms[0][0])}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())

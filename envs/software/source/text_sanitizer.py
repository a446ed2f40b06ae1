"""Text for an agent: bounded, and without characters that a terminal or a template would act on."""

MOST_CHARACTERS = 6000
_KEPT = "\n\t"


def harmless(text: str) -> str:
    r"""Text whose control characters, lone surrogates and other unprintable ones are spelled out.

    >>> harmless("a\x1b[31mb\r\n")
    'a\\x1b[31mb\\r\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else c.encode("unicode_escape").decode() for c in text)


def bounded(text: str, most: int = MOST_CHARACTERS) -> str:
    """Harmless text of about ``most`` characters: the first half and the last of what is longer."""
    text = harmless(text)
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


def numbered(lines: list[str], first: int) -> str:
    """Lines with their numbers, the first of which is ``first``.

    >>> print(numbered(["def f():", "    pass"], 9))
     9  def f():
    10      pass
    """
    width = len(str(first + len(lines) - 1))
    return "\n".join(f"{first + place:>{width}}  {line}".rstrip() for place, line in enumerate(lines))

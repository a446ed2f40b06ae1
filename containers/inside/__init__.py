"""Tool server inside a container. Standard library only, Python 3.8 or newer.

The host sends these modules' source to a bare interpreter and imports some of them itself, so both sides agree.
"""

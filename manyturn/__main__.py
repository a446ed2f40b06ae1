"""``python -m manyturn`` is the command line."""

from manyturn.cli.app import main

main()

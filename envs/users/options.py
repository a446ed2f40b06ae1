"""Options of users that have none."""

from manyturn.envs.contract.options import Options


class NoOptions(Options):
    """There is nothing to choose: any option is an error."""

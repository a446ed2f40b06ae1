"""A rank that a run has started on its own machine: it learns until the run is over.

Started as ``python -P -m manyturn.trainers.run.setup.ranks.follower RANK SIZE PORT``. The line ``ready`` on standard
output says that it goes to meet the others.
"""

import sys

from manyturn.trainers.learn.ranks.process_group import RankLost
from manyturn.trainers.learn.ranks.rendezvous import Meeting
from manyturn.trainers.run.setup.ranks.rank_startup import follow


def main() -> None:
    """Follow rank 0, which listens at a port of this machine."""
    rank, size, port = map(int, sys.argv[1:])
    print("ready", flush=True)
    try:
        follow(Meeting.joined(rank, size, "127.0.0.1", port, all_here=True, own_machine=True))
    except RankLost as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

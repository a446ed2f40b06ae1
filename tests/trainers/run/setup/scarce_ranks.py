"""``manyturn`` in ranks on machines of their own, each with as many bytes of memory as its first word says."""

import os
import sys

from manyturn.agents.engine.decoding import memory
from manyturn.cli.app import main

os.environ["LOCAL_WORLD_SIZE"] = "1"
most = float(sys.argv.pop(1))
memory.main_memory = lambda: (most, most)
main()

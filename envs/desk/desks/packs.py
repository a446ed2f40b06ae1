"""Desks by name."""

from manyturn.envs.desk.desks.retail import RETAIL
from manyturn.envs.desk.desks.telecom import TELECOM
from manyturn.envs.desk.desks.travel import TRAVEL

PACKS = {pack.name: pack for pack in (RETAIL, TRAVEL, TELECOM)}

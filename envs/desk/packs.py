"""The desks that there are."""

from manyturn.envs.desk.retail.desk import RETAIL
from manyturn.envs.desk.telecom.desk import TELECOM
from manyturn.envs.desk.travel.desk import TRAVEL

PACKS = {pack.name: pack for pack in (RETAIL, TRAVEL, TELECOM)}

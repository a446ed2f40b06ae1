"""Turn rewards: functions from a batch of turns to a batch of turns, one per file."""

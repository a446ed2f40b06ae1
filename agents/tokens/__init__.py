"""Token ledger of an episode, its keys, and the usage of tokens."""

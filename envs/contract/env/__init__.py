"""An environment's own side: ``TextEnv``, turns, roles and the space of texts."""

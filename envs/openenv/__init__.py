"""Environments of other projects that a server of OpenEnv hosts, by the id ``openenv:URL``."""

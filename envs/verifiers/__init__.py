"""Tasksets of packages for verifiers, by the id ``verifiers:PACKAGE``."""

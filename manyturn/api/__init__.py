"""Python interface: train, evaluate, compare, plan."""

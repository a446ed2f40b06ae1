"""The search for tasks: faults put into libraries by operators, and validated by the libraries' tests."""

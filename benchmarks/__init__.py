"""Scripts that make every figure of README and pages."""

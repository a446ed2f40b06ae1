"""Terminal output, exit codes, and parsing of overrides."""

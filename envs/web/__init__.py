"""A browser for environments: one Chromium for each process, pages as numbered text, actions by number."""

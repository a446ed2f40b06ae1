"""Questions in English, answered by SQL queries over generated databases."""

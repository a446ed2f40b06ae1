"""Order of playing and learning: schedule, staleness, duration forecast."""

"""Text adventures in houses of rooms: treasure hunts and cooking, generated from numbers."""

"""Teaching a simulated pupil, scored by what it knows afterwards."""

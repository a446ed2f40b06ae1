"""Tasks of the software environment: the lock file, drills, and importers of other projects' problems."""

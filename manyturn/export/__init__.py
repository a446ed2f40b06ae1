"""Export of environments to packages, datasets and task folders."""

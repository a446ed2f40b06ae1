"""Names of environments: ids, files and schemes, and the catalogue of this project."""
